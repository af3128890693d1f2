"""Loops are the same steps in the same order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.plan.unrolled import unroll
from pipeline.plan.vocabulary import Loop, Move, Signal, Slice, Step, Wait, value
from pipeline.strategies.swap.roll import rolled


def flat(steps: tuple[Step, ...]) -> list[Step]:
    """Loops unrolled, positions as numbers."""
    result = list[Step]()
    for step, env in unroll(steps, {}):
        match step:
            case Wait(at_least=index):
                result.append(replace(step, at_least=value(index, env)))
            case Move(src=src, dst=dst, frame=frame):
                placed = [
                    replace(
                        piece,
                        lo=tuple(value(n, env) for n in piece.lo),
                        copy=value(piece.copy, env),
                    )
                    for piece in (src, dst)
                ]
                result.append(Move(placed[0], placed[1], value(frame, env)))
            case _:
                result.append(step)
    return result


def move(number: int, row: int, frame: int = 0) -> Move:
    piece = Slice("there", (row, 0), (2, 3), number)
    return Move(replace(piece, buffer="card", copy=frame), piece, frame)


def size(steps: tuple[Step, ...]) -> int:
    return sum(1 + size(step.body) if isinstance(step, Loop) else 1 for step in steps)


def test_three_nested_loops_are_found() -> None:
    steps, number = list[Step](), 0
    for frame in range(4):
        for row in range(5):
            for _ in range(6):
                steps += [Wait("cpu", number - 3), move(number, row, frame), Signal("io")]
                number += 1
            steps.append(Wait("cpu", number))
    loops = rolled(steps)
    assert flat(loops) == steps
    assert size(loops) == 7


@pytest.mark.parametrize("seed", range(40))
def test_any_steps_stay_what_they_are(seed: int) -> None:
    """Random repetitions of random pieces, some with positions that go on evenly."""
    rng = np.random.default_rng(seed)
    steps = list[Step]()
    for _ in range(rng.integers(1, 8)):
        piece = rng.integers(0, 3, rng.integers(1, 5))
        slope = int(rng.integers(-1, 3))
        for turn in range(rng.integers(1, 9)):
            wild = int(rng.integers(0, 50)) if rng.random() < 0.1 else 0
            for kind in piece:
                at = turn * slope + wild
                steps.append([Wait("cpu", at), move(at, 2 * turn), Signal("io")][kind])
    assert flat(rolled(steps)) == steps


def test_nothing_gives_nothing() -> None:
    assert rolled([]) == ()
