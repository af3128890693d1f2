"""Attacks on places: two things in one, tables and rings that meet themselves, copies."""

from __future__ import annotations

from dataclasses import replace

from pipeline.hardware import Memory
from pipeline.plan.vocabulary import Affine, Buffer, Lin, Loop, Move, Slice, Table, packed, whole
from tests.plan.adversarial import (
    Subject,
    attack,
    buffer,
    changed,
    layer,
    moved,
    on_layer,
    reading,
    rebuffered,
    step_of,
    with_buffers,
    with_steps,
)


@attack("overlaps another one")
def residents_that_overlap() -> Subject:
    """The bias begins within the input."""
    plan, graph = layer()
    bias = replace(plan.buffer["y.bias"], memory="sram", map=packed((3,), 8, 6))
    return with_buffers(plan, bias), graph


on_layer(
    # The bias begins within the weights, in rom.
    ("constants_that_overlap", "overlaps another one", buffer("y.bias", map=packed((3,), 8, 22))),
    # The bias begins in the upper half of the weights' last byte.
    (
        "constants_that_overlap_in_half_a_byte",
        "off a byte",
        buffer("y.bias", map=packed((3,), 8, 23)),
    ),
    # Both constants from the first byte of flash on.
    ("constants_in_one_place", "overlaps another one", lambda plan: moved(plan, "y.bias", 0)),
)


@attack("overlaps another one")
def one_constant_twice_in_one_place() -> Subject:
    """The weights under two names and in two orders, in the same bytes."""
    plan, graph = layer()
    turned = replace(plan.buffer["y.weight"], name="turned", map=Affine(0, (2, 6)))
    plan = reading(plan, "y.weight", turned)
    return replace(plan, resident=(*plan.resident, "turned")), graph


@attack("overlaps another one")
def kept_constants_between_each_other() -> Subject:
    """The bias in the gaps between weights, one of which is not where it seems to be."""
    plan, graph = layer()
    weight = rebuffered(plan, "y.weight", map=Affine(0, (16, 4)))
    return rebuffered(weight, "y.bias", map=Affine(2, (18,))), graph


on_layer(
    # Outputs 1 and 2 in the same bytes.
    (
        "table_that_names_a_place_twice",
        "writes two elements of y into one cell",
        buffer("y", map=Table((16, 20, 20))),
    ),
    # Each output lies half on the one before.
    (
        "table_of_elements_that_overlap",
        "writes two elements of y into one cell",
        buffer("y", map=Table((16, 18, 20))),
    ),
    # Biases 1 and 2 are one byte.
    (
        "table_of_constants_that_overlap",
        "has two elements in one cell",
        buffer("y.bias", map=Table((24, 26, 26))),
    ),
    # Four inputs in a ring of three.
    ("resident_in_a_ring", "has two elements in one cell", buffer("x", map=Affine(0, (2,), (3,)))),
    # Three rows of weights in a ring of two.
    (
        "constant_in_a_ring",
        "has two elements in one cell",
        buffer("y.weight", map=Affine(0, (8, 2), (2, 0))),
    ),
    # All outputs in the first one's place.
    (
        "ring_of_one",
        "writes two elements of y into one cell",
        buffer("y", map=Affine(16, (4,), (1,))),
    ),
)


@attack("finds 8-bit element of y.weight number 8")
def ring_that_is_written_too_far_ahead() -> Subject:
    """Four weights of a row arrive in a ring of two rows before the first one is used."""
    plan, graph = layer()
    ring = Buffer("ring", "y.weight", "sram", (3, 4), 8, Affine(2 * 64, (8, 2), (2, 0)))
    step, row = step_of(plan), Lin(0, (("r", 1),))
    source, target = (Slice(name, (row, 0), (1, 4)) for name in ("y.weight", "ring"))
    use = replace(step, ins=(step.ins[0], whole(ring), step.ins[2]))
    plan = with_buffers(plan, ring)
    return with_steps(plan, Loop("r", 3, (Move(source, target),)), use), graph


on_layer(
    # All outputs in one place, for there is no way on.
    (
        "stride_of_nothing",
        "writes two elements of y into one cell",
        buffer("y", map=Affine(16, (0,))),
    ),
    # All rows of weights are one row.
    (
        "stride_of_nothing_in_a_constant",
        "has two elements in one cell",
        buffer("y.weight", map=Affine(0, (0, 2))),
    ),
    # 16-bit outputs a byte apart.
    (
        "stride_of_half_an_element",
        "writes two elements of y into one cell",
        buffer("y", map=Affine(16, (2,))),
    ),
    # 8-bit inputs from the middle of bytes on.
    ("stride_of_half_a_byte", "off a byte", buffer("x", map=Affine(0, (3,)))),
    # Six bytes of output over four of input, from low to high: output 0 kills inputs 0 and 1
    # before output 1 has read them.
    ("output_over_the_input", "overwrites element 0 of x before", lambda plan: moved(plan, "y", 0)),
)


@attack("overwrites element 10 of y.weight before")
def output_over_the_weights() -> Subject:
    """The weights lie in SRAM, and the last of them is overwritten by the first output."""
    plan, graph = layer()
    weight = replace(plan.buffer["y.weight"], memory="sram", map=packed((3, 4), 8, 2 * 64))
    return moved(with_buffers(plan, weight), "y", 74), graph


@attack("finds 16-bit element of y number 0")
def output_over_a_constant_that_has_been_read() -> Subject:
    """In one unit all weights are read before they are overwritten: the next frame misses them."""
    plan, graph = layer()
    weight = replace(plan.buffer["y.weight"], memory="sram", map=packed((3, 4), 8, 2 * 64))
    return changed(moved(with_buffers(plan, weight), "y", 64), unit=(3,)), graph


@attack("finds 16-bit element of y number 0")
def output_over_a_constant_of_role_activation() -> Subject:
    """The same with a constant that may be written."""
    plan, graph = layer()
    weight = replace(
        plan.buffer["y.weight"], memory="sram", role="activation",
        map=packed((3, 4), 8, 2 * 64),
    )  # fmt: skip
    return changed(moved(with_buffers(plan, weight), "y", 64), unit=(3,)), graph


on_layer(
    # Which one is meant?
    (
        "two_buffers_of_one_name",
        "there are two of buffer",
        lambda plan: replace(plan, buffers=(*plan.buffers, plan.buffer["y"])),
    ),
    # sram is rom, and again it is not.
    (
        "two_memories_of_one_name",
        "there are two of memory",
        lambda plan: replace(plan, memories=(Memory("sram", 128, "rom"), *plan.memories)),
    ),
    # The input arrives twice.
    (
        "one_resident_twice",
        "there are two of resident",
        lambda plan: replace(plan, resident=(*plan.resident, "x")),
    ),
    # The weights are named twice.
    (
        "one_constant_twice",
        "there are two of resident",
        lambda plan: replace(plan, resident=(*plan.resident, "y.weight")),
    ),
)


@attack("finds 16-bit element of y of frame 1 number 0")
def copies_over_each_other() -> Subject:
    """Two copies of the output, the second a byte after the first."""
    plan, graph = layer()
    two = rebuffered(rebuffered(plan, "y", copies=2, copy_stride=2), "x", copies=2, copy_stride=32)
    step = step_of(two)
    steps = [
        replace(step, frame=frame, out=replace(step.out, copy=frame),
                ins=(replace(step.ins[0], copy=frame), *step.ins[1:]))
        for frame in (0, 1)
    ]  # fmt: skip
    return replace(with_steps(two, *steps), frames=2), graph


@attack("are no places apart")
def copies_in_one_place() -> Subject:
    """Two copies of the input with nothing between them."""
    plan, graph = layer()
    two = rebuffered(rebuffered(plan, "x", copies=2), "y", copies=2, copy_stride=32)
    step = step_of(two)
    steps = [
        replace(step, frame=frame, out=replace(step.out, copy=frame),
                ins=(replace(step.ins[0], copy=frame), *step.ins[1:]))
        for frame in (0, 1)
    ]  # fmt: skip
    return replace(with_steps(two, *steps), frames=2), graph


@attack("reaches nibbles")
def copies_that_leave_the_memory() -> Subject:
    """The second copy lies beyond the end."""
    plan, graph = layer()
    ring = Buffer("ring", "x", "sram", (4,), 8, packed((4,), 8, 64), copies=2, copy_stride=256)
    return with_buffers(plan, ring), graph


@attack("reaches nibbles")
def copies_below_the_memory() -> Subject:
    """The second copy lies below byte 0."""
    plan, graph = layer()
    ring = Buffer("ring", "x", "sram", (4,), 8, packed((4,), 8, 64), copies=2, copy_stride=-66)
    return with_buffers(plan, ring), graph


on_layer(
    # A constant is of no frame.
    (
        "copies_of_a_constant",
        "of role constant has 2 copies",
        buffer("y.bias", copies=2, copy_stride=8),
    ),
    # Two copies of the output of one frame.
    ("copies_of_what_is_there_once", "copies for 1 frames", buffer("y", copies=2, copy_stride=32)),
)


@attack("off a byte")
def copies_between_bytes() -> Subject:
    """The second copy begins in the middle of a byte."""
    plan, graph = layer()
    ring = Buffer("ring", "x", "sram", (4,), 8, packed((4,), 8, 64), copies=2, copy_stride=9)
    return with_buffers(plan, ring), graph


@attack("of role activation has 0 copies")
def no_copies() -> Subject:
    """0 places."""
    plan, graph = layer()
    return rebuffered(plan, "y", copies=0), graph


@attack("finds garbage")
def another_copy_than_was_written() -> Subject:
    """Written to copy 0, read from copy 1."""
    plan, graph = layer()
    ring = Buffer("ring", "x", "sram", (4,), 8, packed((4,), 8, 128), copies=2, copy_stride=16)
    step = step_of(plan)
    use = replace(step, ins=(replace(whole(ring), copy=1), *step.ins[1:]))
    plan = with_buffers(plan, ring)
    return with_steps(plan, Move(whole(plan.buffer["x"]), whole(ring)), use), graph
