"""Attacks by type: fractions, text and nothing where a number, a name or a slice belongs."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

from pipeline.plan.vocabulary import (
    Affine,
    Lin,
    Signal,
    Slice,
    Table,
    Track,
    Wait,
    whole,
)
from tests.plan.adversarial import (
    Subject,
    attack,
    changed,
    halves,
    layer,
    moved,
    of_layer,
    rebuffered,
    scratch,
    step_of,
    sums,
    with_buffers,
    with_steps,
)


@attack("Affine.base is 16.0")
def address_that_is_a_float() -> Subject:
    """Nibble 16.0: equal to 16, but no place in an array."""
    return of_layer(lambda plan: moved(plan, "y", 8.0))


@attack("Affine.base is 16.5")
def address_between_two_nibbles() -> Subject:
    """Nibble 16.5."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Affine(16.5, (4,))))  # type: ignore[arg-type]


@attack("Affine.base is nan")
def address_that_is_no_number() -> Subject:
    """Not a number compares with nothing, so that no bound is ever exceeded."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Affine(nan, (4,))))  # type: ignore[arg-type]


@attack("Affine.base is -inf")
def address_that_is_infinite() -> Subject:
    """Beyond every memory."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Affine(-inf, (4,))))  # type: ignore[arg-type]


@attack("Affine.strides is 4.0")
def stride_that_is_a_float() -> Subject:
    """A stride of 4.0."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Affine(16, (4.0,))))  # type: ignore[arg-type]


@attack("Affine.wrap is 3.0")
def ring_that_is_a_float() -> Subject:
    """A ring of 3.0."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Affine(16, (4,), (3.0,))))  # type: ignore[arg-type]


@attack("Table.cells is 24.9")
def table_of_floats() -> Subject:
    """numpy makes whole numbers of 16.9, 20.9 and 24.9."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Table((16.9, 20.9, 24.9))))  # type: ignore[arg-type]


@attack("Table.cells is '24'")
def table_of_text() -> Subject:
    """numpy makes numbers of "16", too."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Table(("16", "20", "24"))))  # type: ignore[arg-type]


@attack("Buffer.map is")
def map_that_is_missing() -> Subject:
    """None."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=None))


@attack("Buffer.map is")
def map_that_is_a_list() -> Subject:
    """A list of places in place of a table."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=[16, 20, 24]))


@attack("Buffer.shape is 3.0")
def shape_of_floats() -> Subject:
    """Equal to the tensor's."""
    return of_layer(lambda plan: rebuffered(plan, "y", shape=(3.0,)))


@attack("Buffer.shape is True")
def shape_of_bools() -> Subject:
    """True is 1."""
    return of_layer(lambda plan: with_buffers(plan, replace(scratch(64, 1), shape=(True,))))


@attack("Buffer.bits is 16.0")
def bits_that_are_a_float() -> Subject:
    """16.0 bits."""
    return of_layer(lambda plan: rebuffered(plan, "y", bits=16.0))


@attack("has elements of 12 bits")
def bits_that_nothing_has() -> Subject:
    """12 bits."""
    return of_layer(lambda plan: rebuffered(plan, "y", bits=12))


@attack("Buffer.role is 'weights'")
def role_that_does_not_exist() -> Subject:
    """Neither accumulator nor constant, so nothing forbids anything."""
    return of_layer(lambda plan: rebuffered(plan, "x", role="weights"))


@attack("Buffer.role is ''")
def role_of_a_constant_that_does_not_exist() -> Subject:
    """Weights in a role of no name."""
    return of_layer(lambda plan: rebuffered(plan, "y.weight", role=""))


@attack("Buffer.step is 2.5")
def step_that_is_a_float() -> Subject:
    """Sums in units of 2.5."""
    return halves(replace(sums("acc", 32, 16), step=2.5))  # type: ignore[arg-type]


@attack("Buffer.step is nan")
def step_that_is_no_number() -> Subject:
    """Sums in units that compare with nothing."""
    return halves(replace(sums("acc", 32, 16), step=nan))  # type: ignore[arg-type]


@attack("Buffer.copies is 1.0")
def copies_that_are_a_float() -> Subject:
    """1.0 copies."""
    return of_layer(lambda plan: rebuffered(plan, "y", copies=1.0))


@attack("Slice.lo is 0.0")
def slice_from_a_float() -> Subject:
    """From 0.0 on."""
    return of_layer(lambda plan: changed(plan, out=Slice("y", (0.0,), (3,))))  # type: ignore[arg-type]


@attack("Slice.size is 2.5")
def slice_of_a_float() -> Subject:
    """2.5 outputs."""
    return of_layer(lambda plan: changed(plan, out=Slice("y", (0,), (2.5,))))  # type: ignore[arg-type]


@attack("Slice.lo is '0'")
def slice_from_text() -> Subject:
    """From "0" on."""
    return of_layer(lambda plan: changed(plan, out=Slice("y", ("0",), (3,))))  # type: ignore[arg-type]


@attack("Slice.copy is 0.5")
def copy_that_is_a_float() -> Subject:
    """Copy 0.5."""
    return of_layer(lambda plan: changed(plan, out=replace(whole(plan.buffer["y"]), copy=0.5)))  # type: ignore[arg-type]


@attack("Compute.frame is 0.5")
def frame_that_is_a_float() -> Subject:
    """Frame 0.5 lies between 0 and 1."""
    return of_layer(lambda plan: changed(plan, frame=0.5))


@attack("Compute.frame is nan")
def frame_that_is_no_number() -> Subject:
    """Not a number."""
    return of_layer(lambda plan: changed(plan, frame=nan))


@attack("Plan.frames is 1.0")
def frames_that_are_a_float() -> Subject:
    """1.0 frames."""
    return of_layer(lambda plan: replace(plan, frames=1.0))  # type: ignore[arg-type]


@attack("Lin.coef is 0.5")
def coefficient_that_is_a_float() -> Subject:
    """0.5 times a variable of no loop around it."""
    return of_layer(lambda plan: changed(plan, out=Slice("y", (Lin(0, (("k", 0.5),)),), (3,))))  # type: ignore[arg-type]


@attack("Wait.at_least is nan")
def level_that_is_no_number() -> Subject:
    """A wait until a counter is at least not a number."""
    return of_layer(lambda plan: with_steps(plan, step_of(plan), Wait("s", nan)))  # type: ignore[arg-type]


@attack("Wait.at_least is 0.5")
def level_between_two_signals() -> Subject:
    """A wait until half a signal."""
    plan, graph = layer()
    tracks = (Track("a", (Signal("s"),)), Track("b", (Wait("s", 0.5), step_of(plan))))  # type: ignore[arg-type]
    return replace(plan, tracks=tracks), graph


@attack("Compute.out is None")
def slice_that_is_missing() -> Subject:
    """None where the output belongs."""
    return of_layer(lambda plan: changed(plan, out=None))


@attack("Compute.ins is 'y.bias'")
def inputs_that_are_names() -> Subject:
    """Names where slices belong."""
    return of_layer(lambda plan: changed(plan, ins=("x", "y.weight", "y.bias")))


@attack("Compute.ins is Slice")
def inputs_that_are_one_slice() -> Subject:
    """A slice where a tuple of them belongs."""
    return of_layer(lambda plan: changed(plan, ins=whole(plan.buffer["x"])))


@attack("Compute.scratch is 'x'")
def scratch_that_is_one_name() -> Subject:
    """Text is a sequence of letters: each would be a buffer's name."""
    return of_layer(lambda plan: changed(plan, scratch="x"))


@attack("Track.steps is None")
def step_that_is_missing() -> Subject:
    """None among the steps: no step, but not refused either."""
    return of_layer(lambda plan: with_steps(plan, step_of(plan), None))  # type: ignore[arg-type]


@attack("Track.steps is 'y'")
def step_that_is_a_name() -> Subject:
    """Text among the steps."""
    return of_layer(lambda plan: with_steps(plan, step_of(plan), "y"))  # type: ignore[arg-type]


@attack("Compute.partial is 'no'")
def partial_that_is_text() -> Subject:
    """ "no" is true."""
    plan, graph = halves()
    clear, first, *rest = plan.tracks[0].steps
    return with_steps(plan, clear, replace(first, partial="no"), *rest), graph  # type: ignore[call-arg]


@attack("Plan.buffers is None")
def buffers_that_are_missing() -> Subject:
    """None where the buffers belong."""
    return of_layer(lambda plan: replace(plan, buffers=None))  # type: ignore[arg-type]


@attack("Plan.output is None")
def output_that_is_missing() -> Subject:
    """None where the output's name belongs."""
    return of_layer(lambda plan: replace(plan, output=None))  # type: ignore[arg-type]


@attack("Slice.buffer is")
def names_that_cannot_be_looked_up() -> Subject:
    """A list where a name belongs."""
    return of_layer(lambda plan: changed(plan, out=Slice(["y"], (0,), (3,))))  # type: ignore[arg-type]
