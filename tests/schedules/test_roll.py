"""Loops are the same steps in the same order."""

from collections.abc import Sequence

import numpy as np
import pytest

from pipeline.plan.unrolled import unroll
from pipeline.plan.vocabulary import Index, Lin, Loop, Signal, Step, Wait, value
from pipeline.schedules.roll import rolled

Item = tuple[str, tuple[int, ...]]


def loops_of(items: list[Item]) -> tuple[Step, ...]:
    """Waits, whose counter says what the item was."""
    return rolled(items, lambda shape, at: Wait(shape, at[0]) if at else Signal(shape))


def flat(steps: tuple[Step, ...]) -> list[Item]:
    """Loops unrolled, positions as numbers."""
    result = list[Item]()
    for step, env in unroll(steps, {}):
        if isinstance(step, Wait):
            result.append((step.counter, (value(step.at_least, env),)))
        else:
            assert isinstance(step, Signal)
            result.append((step.counter, ()))
    return result


def size(steps: tuple[Step, ...]) -> int:
    return sum(1 + size(step.body) if isinstance(step, Loop) else 1 for step in steps)


def test_three_nested_loops_are_found() -> None:
    items, number = list[Item](), 0
    for frame in range(4):
        for row in range(5):
            for _ in range(6):
                items += [("wait", (number - 3,)), ("move", (10 * row + frame,)), ("done", ())]
                number += 1
            items.append(("wait", (number,)))
    loops = loops_of(items)
    assert flat(loops) == items
    assert size(loops) == 7


def test_every_position_moves_on_its_own() -> None:
    found = list[list[Index]]()

    def step(shape: str, positions: Sequence[Index]) -> Step:
        found.append(list(positions))
        return Signal(shape)

    rolled([("a", (n, 7, 10 - 2 * n)) for n in range(5)], step)
    assert found == [[Lin(0, (("i0", 1),)), 7, Lin(10, (("i0", -2),))]]


@pytest.mark.parametrize("seed", range(40))
def test_any_steps_stay_what_they_are(seed: int) -> None:
    """Random repetitions of random pieces, some with positions that go on evenly."""
    rng = np.random.default_rng(seed)
    items = list[Item]()
    for _ in range(rng.integers(1, 8)):
        piece = rng.integers(0, 3, rng.integers(1, 5))
        slope = int(rng.integers(-1, 3))
        for turn in range(rng.integers(1, 9)):
            wild = int(rng.integers(0, 50)) if rng.random() < 0.1 else 0
            for kind in piece:
                at = turn * slope + wild
                items.append(
                    [("wait", (at,)), ("move", (2 * turn + 1000 * at,)), ("done", ())][kind]
                )
    assert flat(loops_of(items)) == items


def test_nothing_gives_nothing() -> None:
    assert loops_of([]) == ()
