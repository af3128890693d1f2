"""Refusals by ``verify``, by hand: each check once for each way to fail it, and what it says."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pool2d import MaxPool2d
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Clear,
    Compute,
    Finish,
    Lin,
    Loop,
    Move,
    Slice,
    Step,
    Table,
    packed,
    whole,
)
from tests.plan.agreement import refuse
from tests.plan.small import (
    Change,
    Subject,
    before,
    buffer,
    edited,
    fetched,
    halves,
    layer,
    like_x,
    looked_up,
    memory,
    moved,
    of_one,
    on,
    part,
    plan_with,
    scratch,
    step,
    streamed,
    sums,
    then,
    two_frames,
)

SOUND: dict[str, Callable[[], Subject]] = {
    "a layer": layer,
    "in two halves of its sums": halves,
    "sums of a step": lambda: halves(sums(bits=16, step=3)),
    "a stream": lambda: streamed(0, 1, 2, 3),
    "two tracks": fetched,
    "two frames": two_frames,
    "scratch in a gap": lambda: on(
        layer(),
        then(buffer("x", map=Affine(0, (4,))), step(scratch(1, shape=(1,)), scratch=("scratch",))),
    ),
    "in place": lambda: looked_up(14),
    "in place, from the end on": lambda: looked_up(18, order=((3,), (2,), (1,), (0,))),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_spoilt_is_sound(name: str) -> None:
    verify(*SOUND[name]())


X, COPY, MORE, ACC = Slice("x", (0,), (4,)), like_x("copy", 64), like_x("more", 72), sums()
BIAS, LESS, Y = Slice("y.bias", (0,), (3,)), Slice("y.bias", (0,), (2,)), Slice("y", (0,), (3,))
KEPT = {"memory": "sram"}
"""Fields of a constant in SRAM: no step may write to it."""


ON_LAYER: tuple[tuple[str, Change], ...] = (
    # residents and the output
    ("overlaps another one", moved("y.bias", 3, **KEPT)),
    ("overlaps another one", moved("y.bias", 11)),
    (
        "overlaps another one",
        then(buffer("y.weight", map=Affine(0, (16, 4))), buffer("y.bias", map=Affine(2, (18,)))),
    ),
    ("has two elements in one cell", buffer("y.bias", map=Table((24, 26, 26)))),
    ("has two elements in one cell", buffer("x", map=Affine(0, (2,), (3,)))),
    ("has two elements in one cell", buffer("y.weight", map=Affine(0, (0, 2)))),
    ("brings the input alone", moved("y.bias", 0, memory="stream")),
    ("where nothing can be written", moved("x", 32, memory="flash")),
    ("has to be computed", plan_with(resident=lambda names: (*names, "y"))),
    (
        "arrives in two buffers",
        then(step(COPY), plan_with(resident=lambda names: (*names, "copy"))),
    ),
    ("the plan's output is", buffer("y", role="constant")),
    ("the plan's output is", plan_with(outputs=("x",))),
    ("the output is in flash, where nothing", moved("y", 32, memory="flash")),
    ("the output is in stream, where nothing", moved("y", 0, memory="stream")),
    ("copies for 1 frames", buffer("y", copies=2, copy_stride=32)),
    ("the plan's end needs 16-bit element of y", step(out=Slice("y", (0,), (2,)))),
    (
        "the next frame needs 8-bit element of y.weight",
        then(moved("y.weight", 64, **KEPT), moved("y", 64), step(unit=(3,))),
    ),
    (
        "the next frame needs 8-bit element of x",
        then(moved("y", 0), step(unit=(3,)), plan_with(notes=(("input_kept", True),))),
    ),
    # buffers and their memories
    ("does not have the shape", step(replace(COPY, tensor="z"))),
    ("does not have the shape", step(replace(COPY, shape=(2, 2), map=packed((2, 2), 8)))),
    ("holds 8-bit elements of", buffer("y", bits=8)),
    ("reaches nibbles 252…259 of sram, which has 256", step(scratch(126))),
    ("reaches nibbles -4", buffer("y", map=Affine(-4, (4,)))),
    ("reaches nibbles -2", step(replace(COPY, copies=2, copy_stride=-130))),
    ("off a byte", buffer("x", map=Affine(0, (3,)))),
    ("off a byte", buffer("y.bias", map=packed((3,), 8, 25))),
    ("off a byte", step(replace(COPY, copies=2, copy_stride=9))),
    ("off a byte", buffer("y", map=Table((16, 20, 25)))),
    ("would be watched up to", then(memory(bytes=1 << 30), moved("y", 1 << 29))),
    # steps and what they name
    ("there is no operator z", step(op="z")),
    ("reads one tensor through two slices", step(COPY, ins=lambda ins: (*ins, whole(COPY)))),
    ("slice of y, which it does not", step(ins=lambda ins: (*ins, Slice("y", (0,), (3,))))),
    ("is of frame 7 of 1", before(Move(Slice("x", (0,), (0,)), Slice("x", (0,), (0,)), 7))),
    ("needs an activation buffer of y, not x", step(out=Slice("x", (0,), (3,)))),
    ("lies outside of the tensor", step(ins=lambda ins: (Slice("x", (4,), (4,)), *ins[1:]))),
    ("do not hold all it needs", step(ins=lambda ins: ins[1:])),
    ("lacks part of y.bias", step(ins=lambda ins: ins[:2])),
    ("lacks part of y.bias", step(ins=lambda ins: (*ins[:2], LESS))),
    ("names 2 of 3 units", step(order=((0,), (1,)))),
    ("the origin of each unit once", step(order=((0,), (1,), (1,)))),
    ("the origin of each unit once", step(unit=(2,), order=((0,), (1,)))),
    ("the origin of each unit once", step(order=((0,), (1,), (-1,)))),
    # moves
    ("reads other elements of x", before(Move(Slice("x", (0,), (2,)), Slice("x", (2,), (2,))))),
    ("turns x into y.bias", before(Move(Slice("x", (0,), (3,)), BIAS))),
    (
        "writes to flash, which is read-only",
        before(Move(X, whole(COPY)), buffers=(replace(COPY, memory="flash"),)),
    ),
    (
        "writes to the constant buffer y.bias",
        then(moved("y.bias", 64, **KEPT), before(Move(BIAS, BIAS))),
    ),
    (
        "needs 8-bit element of x number 0",
        before(Move(whole(COPY), whole(MORE)), buffers=(COPY, MORE)),
    ),
    # what is found where
    ("needs 8-bit element of x .*finds garbage", plan_with(resident=("y.weight", "y.bias"))),
    ("needs 8-bit element of y.bias .*finds garbage", plan_with(resident=("x", "y.weight"))),
    (
        "needs 8-bit element of x .*finds garbage",  # written to copy 0, read from copy 1
        before(
            Move(X, whole(COPY)),
            buffers=(replace(COPY, copies=2, copy_stride=16),),
            ins=lambda ins: (replace(whole(COPY), copy=1), *ins[1:]),
        ),
    ),
    ("writes two elements of y into one cell", buffer("y", map=Table((16, 18, 20)))),
    ("writes two elements of y into one cell", buffer("y", map=Affine(16, (4,), (1,)))),
    ("overwrites element 0 of x before", moved("y", 0)),
    (
        "overwrites element 10 of y.weight before",
        then(moved("y.weight", 64, **KEPT), moved("y", 74)),
    ),
    # scratch
    ("scratch overlaps x", step(scratch(3), scratch=("scratch",))),
    ("scratch overlaps y", step(scratch(5), scratch=("scratch",))),
)


@pytest.mark.parametrize(("said", "change"), ON_LAYER)
def test_a_changed_layer_is_refused(said: str, change: Change) -> None:
    plan, graph = layer()
    refuse(change(plan), graph, said)


Change4 = Callable[[Clear, Compute, Compute, Finish], tuple[Step, ...]]
TWO = Slice("acc", (0,), (2,))

ON_HALVES: tuple[tuple[str, Change4], ...] = (
    (
        "finishes other elements",
        lambda c, a, b, f: (c, a, b, f, replace(f, acc=TWO, out=Slice("y", (1,), (2,)))),
    ),
    ("it lacks part of y.bias", lambda c, a, b, f: (c, a, b, replace(f, ins=()))),
    ("it lacks part of y.bias", lambda c, a, b, f: (c, a, b, replace(f, ins=(LESS,)))),
    ("slice of x, which it does not", lambda c, a, b, f: (c, a, b, replace(f, ins=(BIAS, X)))),
    ("finds garbage", lambda c, a, b, f: (a, b, f)),
    ("finds garbage", lambda c, a, b, f: (replace(c, acc=TWO), a, b, f)),
    ("finds element 0 of y incomplete", lambda c, a, b, f: (c, a, c, b, f)),
    (
        "finds element 0 of y incomplete",  # inputs 0 and 1 with the weights of 2 and 3
        lambda c, a, b, f: (c, part(ACC, 0, weights=2), part(ACC, 2, weights=0), f),
    ),
    ("adds a contribution to y twice", lambda c, a, b, f: (c, a, a, f)),
    ("adds a contribution to y twice", lambda c, a, b, f: (c, part(ACC, 0, 3), part(ACC, 1, 3), f)),
    ("clear y needs an accumulator", lambda c, a, b, f: (c, replace(c, acc=Y), a, b, f)),
    ("needs an accumulator buffer of y", lambda c, a, b, f: (c, replace(a, out=Y), b, f)),
    ("needs an activation buffer of y", lambda c, a, b, f: (c, replace(a, partial=False), b, f)),
    ("needs an accumulator buffer of y", lambda c, a, b, f: (c, a, b, replace(f, acc=Y))),
    ("needs an activation buffer of y", lambda c, a, b, f: (c, a, b, replace(f, out=f.acc))),
    ("turns acc into y", lambda c, a, b, f: (c, a, b, Move(f.acc, f.out))),
    ("there is no operator z", lambda c, a, b, f: (replace(c, op="z"), a, b, f)),
    (
        "lies outside of the tensor",
        lambda c, a, b, f: (c, Loop("k", 3, (part(ACC, Lin(0, (("k", 2),))),)), f),
    ),
    ("lies outside of the tensor", lambda c, a, b, f: (c, part(ACC, -2), a, b, f)),
)


@pytest.mark.parametrize(("said", "change"), ON_HALVES)
def test_changed_halves_are_refused(said: str, change: Change4) -> None:
    plan, graph = halves()
    steps = change(*plan.tracks[0].steps)  # type: ignore[arg-type]
    refuse(edited(plan, *steps), graph, said)


def destroyed(byte: int, size: int) -> Subject:
    """Halves of which the second one destroys ``size`` bytes."""
    plan, graph = halves()
    clear, first, second, finish = plan.tracks[0].steps
    assert isinstance(second, Compute)
    here = scratch(byte, shape=(size,), map=packed((size,), 8, 2 * byte))
    return moved("y.bias", 64, **KEPT)(
        edited(plan, clear, first, replace(second, scratch=("scratch",)), finish, buffers=(here,))
    ), graph


def finished(acc: Buffer) -> Subject:
    """Sums in units of 3 are finished as what ``acc`` says they are."""
    plan, graph = halves(sums(step=3))
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    return edited(plan, *steps, replace(last, acc=whole(acc)), buffers=(acc,)), graph


def rounded_maxima() -> Subject:
    op = MaxPool2d("y", ("x",), "y", kernel=(2, 2), stride=(2, 2))
    x = Buffer("x", "x", "sram", (4, 4, 1), 8, packed((4, 4, 1), 8))
    y = Buffer("y", "y", "sram", (2, 2, 1), 8, packed((2, 2, 1), 8, 32))
    acc = Buffer("acc", "y", "sram", (2, 2, 1), 32, packed((2, 2, 1), 32, 48), "accumulator", 3)
    add = Compute("y", whole(acc), (whole(x),), partial=True)
    return of_one(
        op, x, y, Clear("y", whole(acc)), add, Finish("y", whole(acc), whole(y)), more=(acc,)
    )


def look_up_in_parts(clear: bool) -> Subject:
    op = Lookup("y", ("x",), "y", table=tuple(range(256)))
    x, y = like_x("x", 0), replace(like_x("y", 8), tensor="y")
    acc = replace(y, name="acc", bits=32, map=packed((4,), 32, 32), role="accumulator")
    add = Compute("y", whole(acc), (whole(x),), partial=True)
    return of_one(op, x, y, Clear("y", whole(acc)) if clear else add, more=(acc,))


def summed_as_an_input() -> Subject:
    plan, graph = halves()
    held = replace(sums("held", 16, 64), tensor="x", shape=(4,), map=packed((4,), 16, 128))
    clear, first, *rest = plan.tracks[0].steps
    assert isinstance(first, Compute)
    broken = replace(first, ins=(whole(held), *first.ins[1:]))
    return edited(plan, clear, broken, *rest, buffers=(held,)), graph


TWIN, NUMBER_0 = sums("twin", byte=32), "-bit accumulator of y in steps of 3 number 0"
COPIED = Move(whole(ACC), whole(TWIN))

SUMS: tuple[tuple[str, Callable[[], Subject]], ...] = (
    (f"finds 16{NUMBER_0}", lambda: halves(sums(bits=16, step=3), sums("twin", 16, step=5))),
    ("turns acc into twin", lambda: halves(sums(step=3), replace(TWIN, step=5), COPIED)),
    ("adds a contribution to y twice", lambda: halves(ACC, TWIN, COPIED, part(TWIN, 2))),
    (f"finds 32{NUMBER_0}", lambda: finished(sums("twin"))),
    (f"finds 32{NUMBER_0}", lambda: finished(sums("twin", 16, step=3))),
    ("is not chosen; calibrate the plan", lambda: halves(sums(step=0))),
    ("do not fit acc's 16 bits", lambda: (halves(sums(bits=16))[0], layer(127)[1])),
    ("do not fit acc's 16 bits", lambda: (halves(sums(bits=16))[0], layer(-128)[1])),
    ("do not fit acc's 32 bits", rounded_maxima),
    ("cannot be computed in parts", lambda: look_up_in_parts(clear=True)),
    ("cannot be computed in parts", lambda: look_up_in_parts(clear=False)),
    ("reads the accumulators held: finish them first", summed_as_an_input),
    ("finds 32-bit accumulator of y number 0", lambda: halves(sums(byte=0))),
    ("writes two elements of acc", lambda: halves(replace(ACC, map=packed((3,), 16, 32)))),
    ("acc has 32-bit elements off", lambda: halves(replace(ACC, map=packed((3,), 32, 33)))),
    ("to flash, which is read-only", lambda: halves(replace(sums(byte=32), memory="flash"))),
    ("overwrites element 1 of y before", lambda: on(halves(), moved("y", 20))),
    ("scratch overlaps acc", lambda: destroyed(27, 2)),
    ("finish y .*finds garbage", lambda: destroyed(64, 1)),
)


@pytest.mark.parametrize(("said", "make"), SUMS)
def test_other_sums_are_refused(said: str, make: Callable[[], Subject]) -> None:
    refuse(*make(), said)
