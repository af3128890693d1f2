"""Attacks on access: what cannot be written, what comes once, what is read too late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.graph.operators.lookup import Lookup
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Compute,
    Loop,
    Move,
    Plan,
    Signal,
    Slice,
    packed,
    whole,
)
from tests.plan.adversarial import (
    Subject,
    activation,
    attack,
    buffer,
    changed,
    halves,
    layer,
    made,
    moved,
    on_layer,
    plan_of,
    plan_with,
    reading,
    rebuffered,
    step_of,
    with_buffers,
    with_steps,
)
from tests.plan.fixtures import U8, Builder


def streamed(plan: Plan) -> Plan:
    """The input arrives through the stream, and is moved to where it was."""
    arriving = Buffer("arriving", "x", "stream", (4,), 8, packed((4,), 8))
    resident = ("arriving", *plan.resident[1:])
    return replace(with_buffers(plan, arriving), resident=resident)


def four_moves(*indices: int) -> Subject:
    """The stream's elements, one move for each of ``indices``, then the layer."""
    plan, graph = layer()
    plan = streamed(plan)
    moves = [Move(Slice("arriving", (n,), (1,)), Slice("x", (n,), (1,))) for n in indices]
    return with_steps(plan, *moves, step_of(plan)), graph


on_layer(
    # The result is burnt into flash.
    (
        "output_in_rom",
        "where nothing can be written",
        buffer("y", memory="flash", map=packed((3,), 16, 64)),
    ),
    # The result goes where only input comes from.
    (
        "output_in_a_stream",
        "where nothing can be written",
        buffer("y", memory="stream", map=packed((3,), 16, 0)),
    ),
)


@attack("which is read-only")
def sums_in_rom() -> Subject:
    """Sums are added up in flash."""
    plan, graph = halves()
    return rebuffered(plan, "acc", memory="flash", map=packed((3,), 32, 64)), graph


@attack("which is read-only")
def move_into_rom() -> Subject:
    """A copy of the input in flash."""
    plan, graph = layer()
    copy = replace(activation("copy", "x", (4,), 8, 64), memory="flash")
    plan = with_buffers(plan, copy)
    return with_steps(plan, Move(whole(plan.buffer["x"]), whole(copy)), step_of(plan)), graph


@attack("writes to the constant buffer")
def move_into_a_constant() -> Subject:
    """The weights are copied onto themselves: the same bytes, but a write."""
    plan, graph = layer()
    weight = replace(plan.buffer["y.weight"], memory="sram", map=packed((3, 4), 8, 128))
    plan = with_buffers(plan, weight)
    return with_steps(plan, Move(whole(weight), whole(weight)), step_of(plan)), graph


on_layer(
    # The result is written to a buffer that says it is never written.
    ("output_is_a_constant", "the plan's output is", buffer("y", role="constant")),
    # The plan answers with what it was asked.
    ("output_is_the_input", "the plan's output is", plan_with(output="x")),
    # The plan answers with a constant.
    ("output_is_a_bias", "the plan's output is", plan_with(output="y.bias")),
    # The plan answers with nothing.
    ("output_that_does_not_exist", "there is no buffer z", plan_with(output="z")),
    # The result is there before anything is computed.
    (
        "output_that_is_resident",
        "has to be computed",
        lambda plan: replace(with_steps(plan, Signal("s")), resident=(*plan.resident, "y")),
    ),
    # A name without a buffer.
    (
        "resident_that_does_not_exist",
        "there is no buffer z",
        lambda plan: replace(plan, resident=(*plan.resident, "z")),
    ),
    # The layer reads garbage.
    (
        "input_that_never_arrives",
        "finds garbage",
        lambda plan: replace(plan, resident=plan.resident[1:]),
    ),
    # The layer multiplies with garbage.
    (
        "weights_that_never_arrive",
        "finds garbage",
        lambda plan: replace(plan, resident=(plan.resident[0], plan.resident[2])),
    ),
    # A memory that the plan does not have.
    ("buffer_in_no_memory", "is in an unknown memory", buffer("y", memory="dram")),
    # A tensor that the graph does not have.
    ("buffer_of_no_tensor", "does not have the shape", buffer("y", tensor="z")),
    # Outputs of 16 bits in 8.
    (
        "buffer_of_another_width",
        "holds 8-bit elements of",
        buffer("y", bits=8, map=packed((3,), 8, 16)),
    ),
    # Weights of 8 bits read as 4.
    (
        "weights_of_another_width",
        "holds 4-bit elements of",
        buffer("y.weight", bits=4, map=packed((3, 4), 4, 0)),
    ),
)


made(
    # Element 0 is gone when it is wanted again.
    ("stream_read_twice", "out of order or twice", lambda: four_moves(0, 0, 1, 2, 3)),
    # The last element first.
    ("stream_read_backwards", "out of order or twice", lambda: four_moves(3, 2, 1, 0)),
    # Element 1 passes unread, and comes from where the input used to be.
    ("stream_read_with_a_gap", "out of order or twice", lambda: four_moves(0, 2, 3)),
)


@attack("out of order or twice")
def stream_read_by_a_kernel() -> Subject:
    """Every output needs every input, but each comes only once."""
    plan, graph = layer()
    plan = streamed(plan)
    step = step_of(plan)
    return changed(plan, ins=(Slice("arriving", (0,), (4,)), *step.ins[1:])), graph


@attack("out of order or twice")
def stream_in_another_order() -> Subject:
    """What arrives first is element 3."""
    plan, graph = layer()
    plan = rebuffered(streamed(plan), "arriving", map=Affine(6, (-2,)))
    move = Move(Slice("arriving", (0,), (4,)), Slice("x", (0,), (4,)))
    return with_steps(plan, Loop("k", 2, (move,)), step_of(plan)), graph


@attack("out of order or twice")
def stream_that_begins_late() -> Subject:
    """Four bytes pass before the first element."""
    plan, graph = four_moves(0, 1, 2, 3)
    return moved(plan, "arriving", 4), graph


@attack("brings the input alone")
def constant_in_a_stream() -> Subject:
    """The bias arrives with the first frame only: the second one waits for ever."""
    plan, graph = layer()
    arriving = Buffer("arriving", "y.bias", "stream", (3,), 8, packed((3,), 8))
    kept = replace(
        plan.buffer["y.bias"], memory="sram", role="activation", map=packed((3,), 8, 128)
    )
    plan = with_buffers(plan, arriving, kept)
    step = step_of(plan)
    steps = (Move(whole(arriving), whole(kept)), step)
    return replace(with_steps(plan, *steps), resident=("x", "y.weight", "arriving")), graph


@attack("finds 16-bit element of y number 0")
def input_kept_that_is_not() -> Subject:
    """The plan promises to leave its input as it was, and computes over it."""
    plan, graph = layer()
    plan = moved(changed(plan, unit=(3,)), "y", 0)
    return replace(plan, notes=(("input_kept", True),)), graph


@attack("reads other elements")
def move_of_other_elements() -> Subject:
    """Inputs 0 and 1 become inputs 2 and 3."""
    plan, graph = layer()
    move = Move(Slice("x", (0,), (2,)), Slice("x", (2,), (2,)))
    return with_steps(plan, move, step_of(plan)), graph


@attack("turns x into false")
def move_of_another_tensor() -> Subject:
    """The input's bytes under the bias's name."""
    plan, graph = layer()
    bias = replace(plan.buffer["y.bias"], name="false", memory="sram", role="activation",
                   map=packed((3,), 8, 128))  # fmt: skip
    plan = reading(plan, "y.bias", bias)
    move = Move(Slice("x", (0,), (3,)), whole(bias))
    return with_steps(plan, move, step_of(plan)), graph


@attack("finds garbage")
def move_of_garbage() -> Subject:
    """What is copied was never there."""
    plan, graph = layer()
    a, b = activation("a", "x", (4,), 8, 64), activation("b", "x", (4,), 8, 72)
    plan = with_buffers(plan, a, b)
    return with_steps(plan, step_of(plan), Move(whole(a), whole(b))), graph


@attack("reads one tensor through two slices")
def one_tensor_through_two_slices() -> Subject:
    """Half of the input from one place, half from another."""
    plan, graph = layer()
    copy = activation("copy", "x", (4,), 8, 64)
    plan = with_buffers(plan, copy)
    step = step_of(plan)
    both = (Slice("x", (0,), (2,)), Slice("copy", (2,), (2,)), *step.ins[1:])
    move = Move(whole(plan.buffer["x"]), whole(copy))
    return with_steps(plan, move, replace(step, ins=both)), graph


@attack("needs an activation buffer of y")
def input_as_an_output() -> Subject:
    """The layer's name with the input's buffer as its output."""
    plan, graph = layer()
    step = step_of(plan)
    assert isinstance(step, Compute)
    return changed(plan, out=Slice("x", (0,), (3,))), graph


@attack("where nothing can be written")
def input_in_rom() -> Subject:
    """Nobody could write the input there."""
    plan, graph = layer()
    return rebuffered(plan, "x", memory="flash", map=packed((4,), 8, 64)), graph


@attack("arrives in two buffers")
def input_in_two_places() -> Subject:
    """The input arrives twice, and whoever brings it knows of one place."""
    plan, graph = layer()
    twin = activation("twin", "x", (4,), 8, 64)
    return replace(with_buffers(plan, twin), resident=(*plan.resident, "twin")), graph


def looked_up(y: Affine, **fields: object) -> Subject:
    """A table's look-up of four bytes from byte 8 on, to ``y``."""
    b = Builder(np.random.default_rng(0))
    b.tensor("x", (4,), U8)
    b.tensor("y", (4,), U8)
    b.operators.append(Lookup("y", ("x",), "y", table=tuple(range(256))))
    x = activation("x", "x", (4,), 8, 8)
    out = Buffer("y", "y", "sram", (4,), 8, y)
    step = Compute("y", whole(out), (whole(x),), **fields)  # type: ignore[arg-type]
    return plan_of((x, out), step, resident=("x",)), b.graph("x")


made(
    # Output 0 goes where input 1 is still to be read.
    ("in_place_a_byte_up", "overwrites element 1 of x before", lambda: looked_up(Affine(18, (2,)))),
    # Output 0 goes where input 3 is still to be read.
    (
        "in_place_backwards",
        "overwrites element 2 of x before",
        lambda: looked_up(Affine(22, (-2,))),
    ),
    # A byte up in units of two: the second unit's first input is gone.
    (
        "in_place_in_units_too_small",
        "overwrites element 2 of x before",
        lambda: looked_up(Affine(18, (2,)), unit=(2,)),
    ),
    # A byte down, but from the end on.
    (
        "in_place_in_the_wrong_order",
        "overwrites element 0 of x before",
        lambda: looked_up(Affine(14, (2,)), order=((3,), (2,), (1,), (0,))),
    ),
)
