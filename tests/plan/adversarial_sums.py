"""Attacks on accumulators: what a unit of a sum stands for, who holds what part, and how wide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pool2d import MaxPool2d
from pipeline.plan.vocabulary import (
    Buffer,
    Clear,
    Compute,
    Finish,
    Lin,
    Loop,
    Move,
    Slice,
    packed,
    whole,
)
from tests.plan.adversarial import (
    Subject,
    activation,
    attack,
    halves,
    layer,
    part,
    plan_of,
    rebuffered,
    sums,
    with_buffers,
    with_steps,
)
from tests.plan.fixtures import U8, Builder


@attack("finds 16-bit accumulator of y in steps of 3 number 0")
def sums_of_two_steps_in_one_place() -> Subject:
    """The first half is added in units of 3, the second in units of 5, to the same cells."""
    return halves(sums("acc", 16, 16, 3), sums("twin", 16, 16, 5))


@attack("turns acc into twin")
def sums_moved_to_another_step() -> Subject:
    """The first half is made in units of 3 and moved to where a unit is 5."""
    first, second = sums("acc", 16, 16, 3), sums("twin", 16, 32, 5)
    return halves(first, second, Move(whole(first), whole(second)))


@attack("finds 8-bit accumulator of y in steps of 7 number 0")
def cleared_at_7_and_added_at_1_into_8_bits() -> Subject:
    """Clear sees rounded sums, which may saturate; what is added are exact ones, which wrap."""
    rounded, exact = sums("acc", 8, 16, 7), sums("twin", 8, 16, 1)
    plan, graph = layer((127,) * 12)
    out, bias = plan.buffer["y"], plan.buffer["y.bias"]
    steps = (
        Clear("y", whole(rounded)),
        part(exact, 0),
        part(exact, 2),
        Finish("y", whole(exact), whole(out), (whole(bias),)),
    )
    return with_steps(with_buffers(plan, rounded, exact), *steps), graph


@attack("finds 32-bit accumulator of y in steps of 3 number 0")
def finished_at_another_step() -> Subject:
    """Complete sums in units of 3 are finished as if a unit were 1."""
    plan, graph = halves(sums("acc", 32, 16, 3))
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    exact = sums("exact", 32, 16)
    return with_steps(with_buffers(plan, exact), *steps, replace(last, acc=whole(exact))), graph


@attack("finds 32-bit accumulator of y number 0")
def finished_at_another_width() -> Subject:
    """32-bit sums are finished as 16-bit ones: each is another one's half."""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    narrow = sums("narrow", 16, 16)
    return with_steps(with_buffers(plan, narrow), *steps, replace(last, acc=whole(narrow))), graph


@attack("is not chosen")
def step_that_was_never_chosen() -> Subject:
    """A plan that has to be calibrated first."""
    return halves(sums("acc", 8, 16, 0))


@attack("do not fit")
def exact_sums_in_too_few_bits() -> Subject:
    """Sums of up to 4 * 127 * 255 in 16 bits."""
    plan, graph = layer((127,) * 12)
    narrow = sums("acc", 16, 16)
    other, _ = halves(narrow)
    return with_steps(with_buffers(plan, narrow), *other.tracks[0].steps), graph


@attack("finds garbage")
def sums_never_cleared() -> Subject:
    """The first half is added to garbage."""
    plan, graph = halves()
    return with_steps(plan, *plan.tracks[0].steps[1:]), graph


@attack("finds element 0 of y incomplete")
def sums_cleared_in_between() -> Subject:
    """The first half is forgotten."""
    acc = sums("acc", 32, 16)
    return halves(acc, acc, Clear("y", whole(acc)))


@attack("adds a contribution to y twice")
def half_a_sum_twice() -> Subject:
    """One half is added twice, the other one not at all."""
    plan, graph = halves()
    clear, first, _, finish = plan.tracks[0].steps
    return with_steps(plan, clear, first, first, finish), graph


@attack("adds a contribution to y twice")
def halves_that_overlap() -> Subject:
    """Three products and three products of four: two of them count twice."""
    plan, graph = halves()
    clear, _, _, finish = plan.tracks[0].steps
    acc = plan.buffer["acc"]
    wide = [
        Compute(
            "y",
            whole(acc),
            (Slice("x", (low,), (3,)), Slice("y.weight", (0, low), (3, 3))),
            partial=True,
        )
        for low in (0, 1)
    ]
    return with_steps(plan, clear, *wide, finish), graph


@attack("finds element 0 of y incomplete")
def slices_that_do_not_meet() -> Subject:
    """Inputs 0 and 1 with the weights of inputs 2 and 3: nothing is added, though both halves of
    everything were read."""
    plan, graph = halves()
    clear, _, _, finish = plan.tracks[0].steps
    acc = plan.buffer["acc"]
    crossed = [
        Compute(
            "y",
            whole(acc),
            (Slice("x", (low,), (2,)), Slice("y.weight", (0, 2 - low), (3, 2))),
            partial=True,
        )
        for low in (0, 2)
    ]
    return with_steps(plan, clear, *crossed, finish), graph


@attack("adds a contribution to y twice")
def half_a_sum_moved_and_finished_at_both_ends() -> Subject:
    """The first half is copied; each copy gets the second half, one of them twice."""
    a, b = sums("acc", 32, 16), sums("twin", 32, 32)
    plan, graph = halves(a, b, Move(whole(a), whole(b)))
    *steps, last = plan.tracks[0].steps
    return with_steps(plan, *steps, part(b, 2), last), graph


@attack("finds garbage")
def half_of_the_sums_finished() -> Subject:
    """Finish writes all outputs, but only two of three sums were ever opened."""
    plan, graph = halves()
    _, *rest = plan.tracks[0].steps
    return with_steps(plan, Clear("y", Slice("acc", (0,), (2,))), *rest), graph


@attack("finishes other elements")
def finish_of_other_elements() -> Subject:
    """Sums 0 and 1 become outputs 1 and 2."""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    shifted = replace(last, acc=Slice("acc", (0,), (2,)), out=Slice("y", (1,), (2,)))
    return with_steps(plan, *steps, last, shifted), graph


@attack("is incomplete")
def finish_without_bias() -> Subject:
    """The bias is never read."""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    return with_steps(plan, *steps, replace(last, ins=())), graph


@attack("is incomplete")
def finish_with_a_part_of_the_bias() -> Subject:
    """One of three biases is missing."""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    return with_steps(plan, *steps, replace(last, ins=(Slice("y.bias", (0,), (2,)),))), graph


@attack("reads one tensor through two slices")
def finish_reads_one_tensor_twice() -> Subject:
    """The bias through two slices: which one counts?"""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    bias = plan.buffer["y.bias"]
    stale = replace(bias, name="stale", memory="sram", role="activation")
    moved = replace(stale.map, base=2 * 64)  # type: ignore[type-var]
    plan = with_buffers(plan, replace(stale, map=moved))
    both = (Slice("stale", (0,), (3,)), *last.ins)
    return with_steps(plan, *steps, replace(last, ins=both)), graph


@attack("which it does not read")
def finish_reads_what_it_does_not_need() -> Subject:
    """A slice of garbage beside the bias."""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    extra = activation("extra", "x", (4,), 8, 64)
    plan = with_buffers(plan, extra)
    return with_steps(plan, *steps, replace(last, ins=(*last.ins, whole(extra)))), graph


@attack("which it does not read")
def compute_reads_what_it_does_not_need() -> Subject:
    """A slice of the output's own garbage among the inputs."""
    plan, graph = layer()
    (step,) = plan.tracks[0].steps
    assert isinstance(step, Compute)
    extra = replace(plan.buffer["y"], name="extra")
    plan = with_buffers(plan, extra)
    return with_steps(plan, replace(step, ins=(*step.ins, whole(extra)))), graph


@attack("reads the accumulators")
def sums_as_an_input() -> Subject:
    """A kernel reads accumulators where it wants elements."""
    plan, graph = halves()
    b = replace(sums("b", 16, 64), tensor="x", shape=(4,), map=packed((4,), 16, 2 * 64))
    part_ = part(plan.buffer["acc"], 0)
    broken = replace(part_, ins=(whole(b), *part_.ins[1:]))
    return with_steps(with_buffers(plan, b), Clear("y", whole(plan.buffer["acc"])), broken), graph


@attack("needs an accumulator buffer of y")
def partial_into_elements() -> Subject:
    """Products are added to what is no accumulator."""
    plan, graph = halves()
    clear, first, *rest = plan.tracks[0].steps
    assert isinstance(first, Compute)
    return with_steps(plan, clear, replace(first, out=whole(plan.buffer["y"])), *rest), graph


@attack("needs an activation buffer of y")
def whole_into_sums() -> Subject:
    """Finished elements are written where sums are expected."""
    plan, graph = halves()
    clear, first, *rest = plan.tracks[0].steps
    assert isinstance(first, Compute)
    return with_steps(plan, clear, replace(first, partial=False), *rest), graph


@attack("turns acc into y")
def move_from_sums_to_elements() -> Subject:
    """Complete sums are copied to the output as they are, without Finish."""
    plan, graph = halves(sums("acc", 16, 16, 2))
    *steps, _ = plan.tracks[0].steps
    acc, y = plan.buffer["acc"], plan.buffer["y"]
    return with_steps(plan, *steps, Move(whole(acc), whole(y))), graph


@attack("yet holds no elements")
def sums_as_the_output() -> Subject:
    """The plan's result is what it has summed up, not the requantized elements."""
    plan, graph = halves()
    return replace(plan, output="acc"), graph


@attack("yet holds no elements")
def resident_sums() -> Subject:
    """Accumulators of the input are there from the beginning."""
    plan, graph = halves()
    held = Buffer("held", "x", "sram", (4,), 32, packed((4,), 32, 2 * 64), "accumulator")
    plan = with_buffers(plan, held)
    return replace(plan, resident=(*plan.resident, "held")), graph


@attack("finds 32-bit accumulator of y number 0")
def sums_added_in_one_unit_over_their_own_input() -> Subject:
    """Sums lie on the inputs of the second half and are cleared before it is read."""
    return halves(sums("acc", 32, 0))


@attack("writes two elements")
def sums_over_each_other() -> Subject:
    """A stride of 2 bytes for sums of 4."""
    acc = sums("acc", 32, 16)
    return halves(replace(acc, map=packed((3,), 16, 32)))


@attack("off a byte")
def sums_between_bytes() -> Subject:
    """16-bit sums from the middle of a byte on."""
    acc = sums("acc", 32, 16)
    return halves(replace(acc, map=packed((3,), 32, 33)))


@attack("lies outside of the tensor")
def a_loop_that_adds_past_the_end() -> Subject:
    """The third turn of two adds nothing, from beyond the tensor's end."""
    plan, graph = halves()
    clear, _, _, finish = plan.tracks[0].steps
    turn = part(plan.buffer["acc"], Lin(0, (("k", 2),)))
    return with_steps(plan, clear, Loop("k", 3, (turn,)), finish), graph


@attack("lies outside of the tensor")
def a_loop_that_adds_before_the_beginning() -> Subject:
    """The first turn is of inputs -2 and -1."""
    plan, graph = halves()
    clear, _, _, finish = plan.tracks[0].steps
    turn = part(plan.buffer["acc"], Lin(-2, (("k", 2),)))
    return with_steps(plan, clear, Loop("k", 3, (turn,)), finish), graph


@attack("cannot be computed in parts")
def parts_of_what_has_no_parts() -> Subject:
    """A table's look-up, half of it."""
    b = Builder(np.random.default_rng(0))
    b.tensor("x", (4,), U8)
    b.tensor("y", (4,), U8)
    b.operators.append(Lookup("y", ("x",), "y", table=tuple(range(256))))
    graph = b.graph("x")
    x, y = activation("x", "x", (4,), 8, 0), activation("y", "y", (4,), 8, 8)
    acc = replace(sums("acc", 32, 16), shape=(4,), map=packed((4,), 32, 32))
    steps = (
        Clear("y", whole(acc)),
        Compute("y", whole(acc), (whole(x),), partial=True),
        Finish("y", whole(acc), whole(y)),
    )
    return plan_of((x, y, acc), *steps, resident=("x",)), graph


@attack("do not fit")
def rounded_maxima() -> Subject:
    """A maximum in units of 3: it is no sum that could be rounded."""
    b = Builder(np.random.default_rng(0))
    b.tensor("x", (4, 4, 1), U8)
    b.tensor("y", (2, 2, 1), U8)
    b.operators.append(MaxPool2d("y", ("x",), "y", kernel=(2, 2), stride=(2, 2)))
    graph = b.graph("x")
    x, y = activation("x", "x", (4, 4, 1), 8, 0), activation("y", "y", (2, 2, 1), 8, 16)
    acc = Buffer("acc", "y", "sram", (2, 2, 1), 32, packed((2, 2, 1), 32, 48), "accumulator", 3)
    steps = (
        Clear("y", whole(acc)),
        Compute("y", whole(acc), (whole(x),), partial=True),
        Finish("y", whole(acc), whole(y)),
    )
    return plan_of((x, y, acc), *steps, resident=("x",)), graph


@attack("has steps of")
def step_of_elements() -> Subject:
    """A step on what is no accumulator."""
    plan, graph = layer()
    return rebuffered(plan, "y", step=2), graph


@attack("has steps of")
def negative_step() -> Subject:
    """Sums in units of -1."""
    return halves(sums("acc", 32, 16, -1))


@attack("there is no operator")
def sums_of_another_layer() -> Subject:
    """An operator's name that the graph does not have."""
    plan, graph = halves()
    _, *rest = plan.tracks[0].steps
    return with_steps(plan, Clear("z", whole(plan.buffer["acc"])), *rest), graph


@attack("overwrites element 1 of y before")
def finish_over_sums_still_to_be_read() -> Subject:
    """Output 0 goes where sum 1 waits for its turn."""
    plan, graph = halves()
    return rebuffered(plan, "y", map=packed((3,), 16, 2 * 20)), graph
