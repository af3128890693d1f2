"""From when to when each buffer or row of a draft is needed: what follows from the order of steps.

Steps are numbered through, those of a loop once; a loop begins and ends with a number of its own.
What is needed within a pass alone lives as in a program without the loop; all else that a loop
touches lives through all of it. Scratch is destroyed by each step that has it: it lives as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pipeline.plan.steps import Statement, touched
from pipeline.plan.vocabulary import Compute, Loop, Step
from pipeline.schedules.draft import Held, Key


class Life(NamedTuple):
    """The numbers of the first and the last step."""

    first: int
    last: int


def lifetimes(
    steps: Iterable[Step],
    held: Mapping[str, Held],
    resident: Iterable[Key],
    last: Iterable[Key],
) -> dict[Key, Life]:
    """Of each held buffer, or row of one, that a step names; of scratch for each step that has it,
    by the step's number.

    Args:
        resident: what is there before the first step, number 1.
        last: what is needed to the end.
    """
    found = dict.fromkeys(resident, Life(0, 0))
    end = _walk(steps, 0, held, found)
    for key in last:
        _merge(found, key, Life(end, end))
    return found


def numbers(steps: Iterable[Step]) -> int:
    """How many numbers ``steps`` have."""
    return sum(numbers(step.body) + 2 if isinstance(step, Loop) else 1 for step in steps)


def _walk(steps: Iterable[Step], now: int, held: Mapping[str, Held], found: dict[Key, Life]) -> int:
    """The number of the last step."""
    for step in steps:
        now += 1
        if not isinstance(step, Loop):
            for key in _keys(step, now, held):
                _merge(found, key, Life(now, now))
            continue
        inside: dict[Key, Life] = {}
        begin, now = now, _walk(step.body, now, held, inside) + 1
        passes = variables(step)
        for key, life in inside.items():
            once = held[key[0]].within in passes or held[key[0]].buffer.role == "scratch"
            _merge(found, key, life if once else Life(begin, now))
    return now


def _keys(step: Statement, now: int, held: Mapping[str, Held]) -> Iterator[Key]:
    """What the step touches of what is held."""
    if isinstance(step, Compute):
        for name in step.scratch:
            yield name, now if held[name].buffer.role == "scratch" else 0
    for piece in touched(step):
        each = held.get(piece.buffer)
        if each is None:
            continue
        first, size = piece.lo[0], piece.size[0]
        if not each.rows:
            yield piece.buffer, 0
        elif isinstance(first, int):
            yield from each.keys[max(0, first) : max(0, first + size)]
        else:
            yield from each.keys


def variables(loop: Loop) -> set[str]:
    """Of the loop and of those in it."""
    inner = (variables(step) for step in loop.body if isinstance(step, Loop))
    return {loop.var}.union(*inner)


def _merge(found: dict[Key, Life], key: Key, life: Life) -> None:
    known = found.get(key, life)
    found[key] = Life(min(known.first, life.first), max(known.last, life.last))
