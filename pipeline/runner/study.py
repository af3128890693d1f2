"""Other values of keys that an experiment's jobs are run with, too: each is a job of its own, with
its own stages, cache and tracking, and its plan is proved as any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NONE = "study=[]"
"""Among a job's overrides: it alone."""

Values = Mapping[str, Any]


def variants(job: Sequence[str], study: Sequence[Values]) -> list[tuple[list[str], dict[str, Any]]]:
    """``job``, a list of overrides, and one more for each mapping of dotted keys to values in
    ``study``; with each these values, none for the job itself."""
    own = [word for word in job if key(word) != "study"]
    found: list[tuple[list[str], dict[str, Any]]] = [(own, {})]
    for values in () if NONE in job else study:
        others = [word for word in own if key(word) not in values]
        set_ = [f"{name}={value}" for name, value in values.items()]
        found.append(([*others, *set_], dict(values)))
    return found


def key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")
