"""Tiers of a test's parameters: those that ``make test`` runs; the others are for ``.ci/run``."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick(
    chosen: Collection[Any] | int, parameters: Iterable[Any], ci: int | None = None
) -> list[Any]:
    """``parameters`` for ``parametrize``, marked ``ci`` unless they are among ``chosen``, or among
    the first so many. A tuple holds the values of several names.

    Args:
        ci: how many of the others; those that are left are ``slow``.
    """
    every = list(parameters)
    kept = every[:chosen] if isinstance(chosen, int) else chosen
    others = [each for each in every if each not in kept]
    seldom = [] if ci is None else others[ci:]
    return [
        each if each in kept else _marked(each, "slow" if each in seldom else "ci")
        for each in every
    ]


def _marked(each: Any, tier: str) -> Any:
    values = each if isinstance(each, tuple) else (each,)
    return pytest.param(*values, marks=getattr(pytest.mark, tier))
