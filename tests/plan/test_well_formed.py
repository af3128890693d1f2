"""What a plan may say at all; tests/plan/adversarial*.py has many more that it may not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from pipeline.hardware import Memory
from pipeline.plan import serialize, well_formed
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Compute,
    Lin,
    Loop,
    Plan,
    PlanError,
    Signal,
    Table,
    Track,
    packed,
)
from pipeline.typed import LARGEST
from tests.plan.fixtures import channel_partial, herringbone
from tests.plan.mistakes import nodes, rebuilt
from tests.plan.subjects import subjects

PLAN, _ = herringbone(np.random.default_rng(0))
LOOPED, _ = channel_partial(np.random.default_rng(0))


def on(*scratch: Buffer) -> Plan:
    """The plan with ``scratch`` for its only step."""
    (track,) = PLAN.tracks
    (step,) = track.steps
    assert isinstance(step, Compute)
    noisy = replace(step, scratch=tuple(buffer.name for buffer in scratch))
    buffers = (*PLAN.buffers, *scratch)
    return replace(PLAN, buffers=buffers, tracks=(Track("cpu", (noisy,)),))


def room(name: str = "room", at: int = 200, memory: str = "sram") -> Buffer:
    return Buffer(name, "", memory, (4,), 8, packed((4,), 8, at), "scratch")


def test_scratch_is_ram_of_its_own() -> None:
    assert on(room(), room("other", 208))
    for wrong, said in (
        ((room(memory="flash"),), "room is in flash, which is no RAM"),
        ((room(), room("other", 206)), "lies on another scratch"),
        ((replace(room(), map=Affine(200, (0,))),), "not in one piece"),
        ((replace(room(), map=Table((200, 202, 204, 200))),), "not in one piece"),
    ):
        with pytest.raises(PlanError, match=said):
            on(*wrong)
    with pytest.raises(PlanError, match=r"of role scratch is of tensor 'x'"):
        replace(room(), tensor="x")


def nested(depth: int) -> Loop:
    loop = Loop("v0", 1, (Signal("done"),))
    for n in range(1, depth):
        loop = Loop(f"v{n}", 1, (loop,))
    return loop


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (lambda: (Loop("n", 10**12, (Signal("a"),)),), "more than 4000000 steps"),
        (lambda: (Loop("n", 3, ()),), "runs nothing"),
        (lambda: (Loop("n", 0, (Signal("a"),)),), "runs nothing"),
        (lambda: (nested(well_formed.MOST_DEPTH + 1),), "32 deep"),
        (lambda: (nested(3_000),), "32 deep"),
        (lambda: (Loop("n", 2, (Loop("n", 2, (Signal("a"),)),)),), "inside of another loop n"),
        (lambda: (), "1 to 4000000 steps"),
    ],
)
def test_walks_end(steps: Callable[[], tuple[Loop, ...]], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        replace(PLAN, tracks=(Track("cpu", steps()),))


def test_a_body_shared_many_times_is_counted_not_walked() -> None:
    """2 ** 30 steps in 30 objects."""
    loop = Loop("v0", 1, (Signal("a"), Signal("a")))
    for n in range(1, 30):
        loop = Loop(f"v{n}", 1, (loop, loop))
    with pytest.raises(PlanError, match="more than 4000000 steps"):
        replace(PLAN, tracks=(Track("cpu", (loop,)),))


def test_loops_at_the_limit_are_walked() -> None:
    assert replace(PLAN, tracks=(*PLAN.tracks, Track("io", (nested(well_formed.MOST_DEPTH),))))


def test_variables_are_bound() -> None:
    clear, loop, finish = LOOPED.tracks[0].steps
    assert isinstance(loop, Loop)
    first, *rest = loop.body
    assert isinstance(first, Compute)
    for lost in (
        (clear, *loop.body, finish),
        (clear, replace(loop, var="m"), finish),
        (clear, replace(loop, body=(replace(first, frame=Lin(0, (("q", 0),))), *rest)), finish),
    ):
        with pytest.raises(PlanError, match="there is no loop"):
            replace(LOOPED, tracks=(Track("cpu", lost),))


def test_memories_have_a_size_that_a_computer_can_hold() -> None:
    far = tuple(replace(m, bytes=1 << 40) for m in PLAN.memories)
    assert replace(PLAN, memories=far)  # they may be large, as long as little of them is used
    away = replace(PLAN.buffers[0], map=packed(PLAN.buffers[0].shape, 4, 1 << 36))
    with pytest.raises(PlanError, match="addresses are wrong"):
        replace(PLAN, memories=far, buffers=(away, *PLAN.buffers[1:]))
    for bad in (Memory("sram", -1), Memory("sram", 64, "ram", 0)):
        with pytest.raises(PlanError, match="memory sram has"):
            replace(PLAN, memories=(bad, *PLAN.memories[1:]))


WRONG: tuple[Any, ...] = (
    *(2.5, nan, -inf, None, True, LARGEST + 1, [1], ({},)),
    *((each,) for each in (2.5, None, LARGEST + 1, Track("inner", ()), PLAN)),
)
"""Fractions, nothing, a list, or too much, where a number, a name, a slice or a tuple of them
belongs."""
FORM = {
    "Plan.tracks": "its tracks are none|1 to 4000000 steps",
    "Track.steps": "the steps of a track or a loop are no tuple|Track.steps is",
    "Loop.body": "the steps of a track or a loop are no tuple|Loop.body is|runs nothing",
    "Loop.count": "runs nothing|more than|Loop.count is",
}
"""What is looked at before the types are, and what is said of it."""


@pytest.mark.parametrize("cls", serialize.CLASSES.values(), ids=lambda cls: cls.__name__)
def test_no_field_holds_what_is_of_another_type(cls: type) -> None:
    """Whichever it is, of whatever a plan is made of: the refusal names it."""
    plan, path = next(
        (each.plan, path)
        for each in subjects().values()
        for path, node in nodes(each.plan)
        if type(node) is cls
    )
    for field in fields(cls):
        name = f"{cls.__name__}.{field.name}"
        for value in WRONG:
            if value is True and field.type == "bool":
                continue
            with pytest.raises(PlanError, match=FORM.get(name, rf"{name} is")):
                rebuilt(plan, (*path, field.name), value)
