"""Lifetimes against the steps one by one, loops unrolled."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from pipeline.plan.steps import touched
from pipeline.plan.unrolled import unroll
from pipeline.plan.vocabulary import Buffer, Loop, Move, Step, packed, whole
from pipeline.schedules.draft import Held
from pipeline.schedules.lifetimes import LiveInterval, LiveIntervals

NAMES = "abcdef"


def buffer(name: str) -> Buffer:
    return Buffer(name, name, "ram", (3, 2), 8, packed((3, 2), 8))


def steps_of(rng: np.random.Generator, depth: int, names: Iterator[str]) -> tuple[Step, ...]:
    """Moves between random buffers, and loops over such."""
    found = list[Step]()
    for _ in range(rng.integers(1, 5)):
        if depth and rng.random() < 0.4:
            found.append(
                Loop(next(names), int(rng.integers(1, 4)), steps_of(rng, depth - 1, names))
            )
        else:
            one, other = (NAMES[n] for n in rng.choice(len(NAMES), 2, replace=False))
            found.append(Move(whole(buffer(one)), whole(buffer(other))))
    return tuple(found)


def one(number: int) -> range:
    return range(number, number + 1)


def loops(steps: tuple[Step, ...], around: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """(buffer, the variables of the loops around it) of each time that one is touched."""
    for step in steps:
        if isinstance(step, Loop):
            yield from loops(step.body, (*around, step.var))
        else:
            yield from ((piece.buffer, set(around)) for piece in touched(step))


def within(rng: np.random.Generator, steps: tuple[Step, ...]) -> dict[str, Held]:
    """Some of those that only one loop touches are needed within its passes alone."""
    around: dict[str, set[str]] = {}
    for name, variables in loops(steps):
        around[name] = around.get(name, variables) & variables
    found: dict[str, Held] = {}
    for name in NAMES:
        choice = sorted(around.get(name, ())) if name not in "ab" else []
        var = str(rng.choice(choice)) if choice and rng.random() < 0.6 else ""
        found[name] = Held(buffer(name), one(NAMES.index(name)), var)
    return found


def intervals(steps: tuple[Step, ...], held: dict[str, Held]) -> dict[str, list[tuple[int, int]]]:
    """From when to when each buffer is needed, for each pass apart where it says so."""
    times = defaultdict[tuple[str, tuple[tuple[str, int], ...]], list[int]](list)
    end = 0
    for end, (step, env) in enumerate(unroll(steps, {}), 1):
        for piece in touched(step):
            var, outer = held[piece.buffer].within, list(env)
            kept = outer[: outer.index(var) + 1] if var else []
            times[piece.buffer, tuple((name, env[name]) for name in kept)].append(end)
    found = defaultdict[str, list[tuple[int, int]]](list)
    for (name, _), touches in times.items():
        first = 0 if name == "a" else min(touches)
        found[name].append((first, end if name == "b" else max(touches)))
    return found


def meet(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> bool:
    return any(a <= d and c <= b for a, b in one for c, d in other)


@pytest.mark.parametrize("seed", range(150))
def test_what_is_needed_together_lives_together(seed: int) -> None:
    """Buffer a is there before, b to the end. Without loops nothing else lives together."""
    rng = np.random.default_rng(seed)
    steps = steps_of(rng, 2 if seed % 3 else 0, iter(f"i{n}" for n in range(99)))
    held = within(rng, steps)
    lives = LiveIntervals()
    end = lives.walk(steps, held)
    lives.add([0], LiveInterval(0, 0))
    lives.add([1], LiveInterval(end, end))
    needed = intervals(steps, held)
    needed["a"] = needed["a"] or [(0, 0)]
    plain = not any(isinstance(step, Loop) for step in steps)
    for one, other in combinations(sorted(needed), 2):
        if not needed[one] or not needed[other]:
            continue
        a, b = lives[held[one].first], lives[held[other].first]
        together = a.first <= b.last and b.first <= a.last
        assert together or not meet(needed[one], needed[other])
        if plain and "b" not in (one, other):
            assert together == meet(needed[one], needed[other])
