"""Which of a test's parameters ``make test`` runs; the others are for ``.ci/run``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick(chosen: Collection[Any] | int, parameters: Iterable[Any]) -> list[Any]:
    """``parameters`` for ``parametrize``, marked ``ci`` unless they are among ``chosen``, or among
    the first so many. A tuple holds the values of several names."""
    every = list(parameters)
    kept = every[:chosen] if isinstance(chosen, int) else chosen
    return [each if each in kept else _marked(each) for each in every]


def _marked(each: Any) -> Any:
    return pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.ci)
