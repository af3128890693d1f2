"""From when to when each buffer of a draft is needed: what follows from the order of its steps.

Steps are numbered through, those of a loop once; a loop begins and ends with a number of its own.
What is needed within a pass alone lives as in a program without the loop; all else that a loop
touches lives through all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.plan.steps import touched
from pipeline.plan.vocabulary import Compute, Loop, Step


class Life(NamedTuple):
    """The numbers of the first and the last step."""

    first: int
    last: int


def lifetimes(
    steps: Iterable[Step], within: Mapping[str, str], resident: Iterable[str], last: Iterable[str]
) -> dict[str, Life]:
    """Of each buffer that a step names.

    Args:
        within: for a buffer the variable of the loop within whose passes alone it is needed.
        resident: what is there before the first step, number 1.
        last: what is needed to the end.
    """
    found = dict.fromkeys(resident, Life(0, 0))
    end = _walk(steps, 0, within, found)
    for name in last:
        _merge(found, name, Life(end, end))
    return found


def _walk(
    steps: Iterable[Step], now: int, within: Mapping[str, str], found: dict[str, Life]
) -> int:
    """The number of the last step."""
    for step in steps:
        now += 1
        if not isinstance(step, Loop):
            scratch = step.scratch if isinstance(step, Compute) else ()
            for name in (*(piece.buffer for piece in touched(step)), *scratch):
                _merge(found, name, Life(now, now))
            continue
        inside: dict[str, Life] = {}
        begin, now = now, _walk(step.body, now, within, inside) + 1
        passes = variables(step)
        for name, life in inside.items():
            _merge(found, name, life if within.get(name) in passes else Life(begin, now))
    return now


def variables(loop: Loop) -> set[str]:
    """Of the loop and of those in it."""
    inner = (variables(step) for step in loop.body if isinstance(step, Loop))
    return {loop.var}.union(*inner)


def _merge(found: dict[str, Life], name: str, life: Life) -> None:
    known = found.get(name, life)
    found[name] = Life(min(known.first, life.first), max(known.last, life.last))
