"""Plans that cannot even be made: they mean nothing, or ask for more than a machine has."""

from dataclasses import fields, replace
from math import inf, nan
from typing import Any

import pytest

from pipeline.hardware import Memory
from pipeline.plan import serialize, well_formed
from pipeline.plan import vocabulary as v
from pipeline.typed import LARGEST
from tests.plan.mutations import nodes, rebuilt
from tests.plan.small import (
    Change,
    before,
    buffer,
    edited,
    halves,
    layer,
    like_x,
    memory,
    moved,
    plan_with,
    scratch,
    step,
    sums,
    then,
)
from tests.plan.subjects import subjects

K, NOBODY, S = v.Lin(0, (("k", 2),)), v.Lin(0, (("nobody", 0),)), v.Signal("s")
NONE, COPY, TWO = v.Slice("x", (0,), (0,)), like_x("copy", 64), v.Slice("y", (0,), (2,))
BOTH, TRACKS = ("scratch", "more"), tuple(v.Track(f"t{n}", (S,)) for n in range(200_000))


def loops(depth: int, body: tuple[v.Step, ...] = (S,), count: int = 1) -> tuple[v.Step, ...]:
    for level in range(depth):
        body = (v.Loop(f"v{level}", count, body),)
    return body


def inside_itself() -> v.Loop:
    loop = v.Loop("k", 1, ())
    object.__setattr__(loop, "body", (loop,))
    return loop


REFUSED: tuple[tuple[str, Change], ...] = (
    # amounts
    ("loop 'k' runs nothing: count 1000000000000", before(v.Loop("k", 10**12, ()))),
    ("runs nothing", before(v.Loop("k", 10**12, loops(1, count=0)))),
    ("runs nothing", before(v.Loop("k", -1, (S,)))),
    ("more than 4000000 steps", before(v.Loop("k", 1 << 70, (S,)))),
    ("more than 4000000 steps", before(v.Loop("k", 10**12, (v.Move(NONE, NONE),)))),
    ("more than 4000000 steps", before(*loops(30, count=10))),
    ("nested more than 32 deep", before(*loops(3000))),
    ("nested more than 32 deep", before(*loops(3000, ()))),
    ("more than 32 deep", before(*loops(well_formed.MOST_DEPTH + 1))),
    ("nested more than 32 deep", before(inside_itself())),
    ("a plan has 1 to 4000000 steps", plan_with(tracks=())),
    ("a plan has 1 to 4000000 steps", plan_with(tracks=(v.Track("cpu", ()),))),
    ("more than 4000000 steps", plan_with(tracks=(v.Track("cpu", loops(1, count=4_000_001)),))),
    ("no more than 16 tracks, not 200000", plan_with(tracks=TRACKS)),
    ("sram has -1 B", memory(bytes=-1)),
    ("in granules of 0", memory(granule_bytes=0)),
    ("addresses are wrong", then(memory(bytes=1 << 40), moved("y", 1 << 36))),
    ("addresses are wrong", moved("y", -(1 << 36))),
    (f"has {1 << 62} elements", step(scratch(0, shape=(1 << 31,) * 2, map=v.Affine(0, (0, 0))))),
    ("a plan is for 1 to 65536 frames, not 0", plan_with(frames=0)),
    ("not 65537", plan_with(frames=65537)),
    # names
    ("two of memory sram", plan_with(memories=lambda each: (Memory("sram", 128, "rom"), *each))),
    ("two of buffer y", plan_with(buffers=lambda each: (*each, each[1]))),
    ("two of track cpu", plan_with(tracks=lambda each: each * 2)),
    ("two of resident buffer x", plan_with(resident=lambda names: (*names, "x"))),
    ("there is no buffer z", plan_with(resident=lambda names: (*names, "z"))),
    ("there is no buffer z", plan_with(outputs=("z",))),
    ("there is no buffer z", step(out=v.Slice("z", (0,), (3,)))),
    ("unknown memory dram", buffer("y", memory="dram")),
    ("holds no elements", lambda plan: plan_with(outputs=("acc",))(step(sums())(plan))),
    ("holds no elements", lambda plan: plan_with(resident=("scratch",))(step(scratch(64))(plan))),
    (
        "yet holds only a part",
        step(replace(layer()[0].buffer["y"], map=v.Affine(248, (4,), held=((0, 2),))), out=TWO),
    ),
    ("a loop's variable has no name", before(v.Loop("", 2, (S,)))),
    ("inside of another loop k", before(v.Loop("k", 1, (v.Loop("k", 2, (S,)),)))),
    ("no loop nobody around", step(out=v.Slice("y", (NOBODY,), (3,)))),
    ("no loop nobody around", step(out=v.Slice("y", (0,), (3,), NOBODY))),
    ("no loop nobody around", step(frame=NOBODY)),
    ("no loop nobody around", before(v.Wait("s", NOBODY))),
    ("no loop nobody around", before(v.Move(NONE, replace(NONE, lo=(NOBODY,))))),
    ("no loop k around", before(*loops(1), v.Loop("k", 1, (S,)), v.Wait("s", K))),
    # slices, units and orders
    ("has not its 1 axes", step(out=v.Slice("y", (0, 0), (3, 1)))),
    ("has not its 1 axes", step(out=v.Slice("y", (0, 0), (3,)))),
    ("has not its 1 axes", before(v.Move(NONE, v.Slice("x", (0, 0), (0, 0))))),
    ("has -1 indices along an axis", step(out=v.Slice("y", (1,), (-1,)))),
    ("units of (1, 1) do not divide the 1 axes", step(unit=(1, 1))),
    ("units of", step(unit=(0,))),
    ("places that have not its axes", step(order=((0, 0), (1, 0), (2, 0)))),
    ("is delayed by -1 units", step(delay=-1)),
    ("only moves can", buffer("y.weight", memory="card")),
    ("only moves can", buffer("y", memory="card")),
    # maps and buffers
    ("is not of its shape", buffer("y", map=v.Affine(16, (4, 4)))),
    ("is not of its shape", buffer("y.weight", map=v.Affine(0, (8, 2), (3,)))),
    ("is not of its shape", buffer("y", map=v.Affine(16, (4,), (-3,)))),
    ("is not of its shape", buffer("y", map=v.Table((16, 20)))),
    ("is not of its shape", buffer("y", map=v.Table((16, 20, -4)))),
    ("buffer y is empty", buffer("y", shape=(), map=v.Affine(16, ()))),
    ("buffer y is empty", buffer("y", shape=(0,))),
    ("has elements of 3 bits", buffer("y", bits=3)),
    ("has steps of 2", buffer("y", step=2)),
    ("has steps of -1", lambda plan: step(sums(step=-1))(plan)),
    ("of role activation has 0 copies", buffer("y", copies=0)),
    ("of role constant has 2 copies", buffer("y.bias", copies=2, copy_stride=8)),
    ("are no places apart", buffer("y", copies=2)),
    ("are no places apart", buffer("y", copies=1 << 17, copy_stride=1)),
    # scratch
    ("takes constant buffer y.bias for scratch", step(scratch=("y.bias",))),
    ("takes activation buffer copy for scratch", step(COPY, scratch=("copy",))),
    ("there is no buffer nothing", step(scratch=("nothing",))),
    ("is in flash, which is no RAM", step(scratch(200, memory="flash"))),
    ("is in card, which is no RAM", step(scratch(0, memory="card"), scratch=("scratch",))),
    ("is not in one piece", step(scratch(64, map=v.Affine(128, (-2,))))),
    ("is not in one piece", step(scratch(64, map=v.Affine(128, (2,), held=((0, 2),))))),
    ("lies on another scratch", step(scratch(64), scratch=("scratch", "scratch"))),
    ("lies on another scratch", step(scratch(64), scratch(66, "more"), scratch=BOTH)),
    ("takes ahead buffer scratch for", step(scratch(64, role="ahead"), scratch=("scratch",))),
    ("more lies where inputs are fed", step(scratch(64, role="ahead"), scratch(67, "more"))),
    ("of role scratch has 3 copies", lambda plan: step(scratch(64, copies=3))(plan)),
    ("of role scratch is of tensor 'x'", lambda plan: step(scratch(64, tensor="x"))(plan)),
    ("of role activation is of tensor ''", buffer("x", tensor="")),
    ("a slice of scratch", before(v.Move(v.whole(scratch(64)), NONE), buffers=(scratch(64),))),
)


@pytest.mark.parametrize(("said", "change"), REFUSED)
def test_what_is_no_plan_is_refused(said: str, change: Change) -> None:
    plan, _ = layer()
    with pytest.raises(v.PlanError) as refusal:
        change(plan)
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("said", "step", "fields"),
    [("is delayed by 1 units, partial=True", 1, {"delay": 1}), ("units of", 3, {"unit": (1, 1)})],
)
def test_changed_steps_of_halves_are_no_plan(said: str, step: int, fields: dict[str, Any]) -> None:
    plan, _ = halves()
    steps = [*plan.tracks[0].steps]
    steps[step] = replace(steps[step], **fields)  # type: ignore[arg-type]
    with pytest.raises(v.PlanError, match=said):
        edited(plan, *steps)


def test_a_part_of_a_tensor_is_all_that_slices_reach() -> None:
    plan, _ = layer()
    held = replace(COPY, map=v.Affine(124, (2,), held=((2, 4),)))

    def move(low: int | v.Lin, size: int) -> v.Move:
        return v.Move(v.Slice("x", (low,), (size,)), v.Slice("copy", (low,), (size,)))

    assert before(move(2, 2), buffers=(held,))(plan)
    for low, size in ((1, 2), (2, 3), (K, 1)):
        with pytest.raises(v.PlanError, match="beyond the part"):
            before(v.Loop("k", 2, (move(low, size),)), buffers=(held,))(plan)
    for wrong in (((2, 5),), ((2, 2),), ((-1, 2),), ((0, 1), (0, 1))):
        with pytest.raises(v.PlanError, match="is not of its shape"):
            replace(held, map=v.Affine(124, (2,), held=wrong))


def test_a_body_shared_many_times_is_counted_not_walked() -> None:
    """2 ** 30 steps in 30 objects."""
    loop = v.Loop("v0", 1, (S, S))
    for n in range(1, 30):
        loop = v.Loop(f"v{n}", 1, (loop, loop))
    with pytest.raises(v.PlanError, match="more than 4000000 steps"):
        before(loop)(layer()[0])


def test_what_is_at_the_limit_is_a_plan() -> None:
    plan, _ = layer()
    assert before(*loops(well_formed.MOST_DEPTH))(plan)
    assert plan_with(tracks=lambda each: (*each, v.Track("io", loops(1, count=3_999_999))))(plan)
    assert plan_with(tracks=TRACKS[:16])(plan)
    assert memory(3, bytes=0)(plan) and step(delay=1)(plan)
    assert memory(bytes=1 << 40)(plan)  # they may be large, as long as little of them is used
    assert step(scratch(64), scratch(68, "more"), scratch=BOTH)(plan)


WRONG: tuple[Any, ...] = (
    *(2.5, nan, -inf, None, True, LARGEST + 1, [1], ({},)),
    *((each,) for each in (2.5, None, LARGEST + 1, v.Track("inner", ()), layer()[0])),
)
"""Fractions, nothing, a list, or too much, where a number, a name, a slice or a tuple belongs."""
FORM = {
    "Plan.tracks": "its tracks are none|1 to 4000000 steps",
    "Track.steps": "the steps of a track or a loop are no tuple|Track.steps is",
    "Loop.body": "the steps of a track or a loop are no tuple|Loop.body is|runs nothing",
    "Loop.count": "runs nothing|more than|Loop.count is",
}
"""Fields that are looked at before the types are, and what is said of them."""


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
            with pytest.raises(v.PlanError, match=FORM.get(name, rf"{name} is")):
                rebuilt(plan, (*path, field.name), value)
