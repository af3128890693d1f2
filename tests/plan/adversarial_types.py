"""Attacks by form: wrong ranks, wrong types, numbers that no machine holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan

from pipeline.hardware import Memory
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Finish,
    Lin,
    Move,
    Plan,
    Signal,
    Slice,
    Table,
    Track,
    Wait,
    packed,
    whole,
)
from tests.plan.adversarial import (
    Subject,
    attack,
    changed,
    halves,
    layer,
    moved,
    rebuffered,
    scratch,
    step_of,
    sums,
    with_buffers,
    with_steps,
)


def of_layer(change: Callable[[Plan], Plan]) -> Subject:
    plan, graph = layer()
    return change(plan), graph


def with_memory(plan: Plan, **fields: object) -> Plan:
    """``sram`` changed."""
    first, *others = plan.memories
    return replace(plan, memories=(replace(first, **fields), *others))  # type: ignore[arg-type]


# --- ranks


@attack("has not its 2 axes")
def slice_of_too_few_axes() -> Subject:
    """One index into weights of two axes."""
    plan, graph = layer()
    x, _, bias = step_of(plan).ins
    return changed(plan, ins=(x, Slice("y.weight", (0,), (3,)), bias)), graph


@attack("has not its 1 axes")
def slice_of_too_many_axes() -> Subject:
    """Two indices into an output of one axis."""
    return of_layer(lambda plan: changed(plan, out=Slice("y", (0, 0), (3, 1))))


@attack("has not its 1 axes")
def slice_without_axes() -> Subject:
    """No index at all."""
    return of_layer(lambda plan: changed(plan, out=Slice("y", (), ())))


@attack("has not its 1 axes")
def slice_with_more_corners_than_extents() -> Subject:
    """``lo`` and ``size`` are of two ranks."""
    return of_layer(lambda plan: changed(plan, out=Slice("y", (0, 0), (3,))))


@attack("has not its 1 axes")
def empty_slice_of_too_many_axes() -> Subject:
    """Nothing is moved, of a rank that there is not."""
    none = Slice("x", (0, 0), (0, 0))
    return of_layer(lambda plan: with_steps(plan, step_of(plan), Move(none, none)))


@attack("units of")
def unit_of_too_many_axes() -> Subject:
    """Blocks of two axes for an output of one."""
    return of_layer(lambda plan: changed(plan, unit=(1, 1)))


@attack("units of")
def unit_of_nothing() -> Subject:
    """Blocks of no elements."""
    return of_layer(lambda plan: changed(plan, unit=(0,)))


@attack("units of")
def negative_unit() -> Subject:
    """Blocks of -1 elements."""
    return of_layer(lambda plan: changed(plan, unit=(-1,)))


@attack("units of")
def unit_of_a_finish_of_too_many_axes() -> Subject:
    """Blocks of two axes for sums of one."""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    return with_steps(plan, *steps, replace(last, unit=(1, 1))), graph


@attack("names places that have not its axes")
def order_of_too_many_axes() -> Subject:
    """Origins of two axes for an output of one."""
    return of_layer(lambda plan: changed(plan, order=((0, 0), (1, 0), (2, 0))))


@attack("names places that have not its axes")
def order_of_no_axes() -> Subject:
    """Three origins that are nowhere."""
    return of_layer(lambda plan: changed(plan, order=((), (), ())))


@attack("the origin of each unit once")
def order_that_repeats() -> Subject:
    """Outputs 0, 1 and 1 of three."""
    return of_layer(lambda plan: changed(plan, order=((0,), (1,), (1,))))


@attack("the origin of each unit once")
def order_beside_the_units() -> Subject:
    """Blocks of two that begin at 1."""
    return of_layer(lambda plan: changed(plan, unit=(2,), order=((0,), (1,))))


@attack("the origin of each unit once")
def order_beyond_the_end() -> Subject:
    """A fourth output."""
    return of_layer(lambda plan: changed(plan, order=((0,), (1,), (3,))))


@attack("the origin of each unit once")
def negative_order() -> Subject:
    """Output -1, which Python takes for the last one."""
    return of_layer(lambda plan: changed(plan, order=((0,), (1,), (-1,))))


@attack("is not of its shape")
def map_of_too_few_axes() -> Subject:
    """One stride for weights of two axes."""
    return of_layer(lambda plan: rebuffered(plan, "y.weight", map=Affine(0, (2,))))


@attack("is not of its shape")
def map_of_too_many_axes() -> Subject:
    """Two strides for an output of one axis."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Affine(16, (4, 4))))


@attack("is not of its shape")
def rings_of_too_few_axes() -> Subject:
    """One ring for weights of two axes."""
    return of_layer(lambda plan: rebuffered(plan, "y.weight", map=Affine(0, (8, 2), (3,))))


@attack("is not of its shape")
def table_that_is_too_short() -> Subject:
    """Two places for three outputs."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Table((16, 20))))


@attack("is not of its shape")
def table_of_nothing() -> Subject:
    """No places at all."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Table(())))


@attack("buffer y is empty")
def buffer_without_axes() -> Subject:
    """A shape of no axes, as of a single number."""
    return of_layer(lambda plan: rebuffered(plan, "y", shape=(), map=Affine(16, ())))


@attack("does not have the shape")
def buffer_of_another_shape() -> Subject:
    """As many weights, in four rows of three."""
    plan, graph = layer()
    turned = rebuffered(plan, "y.weight", shape=(4, 3), map=packed((4, 3), 8))
    step = step_of(plan)
    ins = (step.ins[0], whole(turned.buffer["y.weight"]), step.ins[2])
    return changed(turned, ins=ins), graph


# --- types


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


# --- magnitudes


@attack("in granules of")
def granule_of_nothing() -> Subject:
    """Engines that read and write 0 bytes at once, on two tracks."""
    plan, graph = layer()
    idle = Track("idle", (Signal("s"),))
    return with_memory(replace(plan, tracks=(*plan.tracks, idle)), granule_bytes=0), graph


@attack("in granules of")
def granule_of_nothing_on_one_track() -> Subject:
    """Nothing can race, but nothing can be read either."""
    return of_layer(lambda plan: with_memory(plan, granule_bytes=0))


@attack("in granules of")
def negative_granule() -> Subject:
    """-1 bytes at once."""
    plan, graph = layer()
    idle = Track("idle", (Signal("s"),))
    return with_memory(replace(plan, tracks=(*plan.tracks, idle)), granule_bytes=-1), graph


@attack("Memory.granule_bytes is 1.5")
def granule_that_is_a_float() -> Subject:
    """1.5 bytes at once."""
    plan, graph = layer()
    idle = Track("idle", (Signal("s"),))
    return with_memory(replace(plan, tracks=(*plan.tracks, idle)), granule_bytes=1.5), graph


@attack("in granules of")
def negative_memory() -> Subject:
    """A memory of -1 bytes that nothing lies in."""
    return of_layer(lambda plan: replace(plan, memories=(*plan.memories, Memory("none", -1))))


@attack("Memory.bytes is 128.5")
def memory_that_is_a_float() -> Subject:
    """128.5 bytes."""
    return of_layer(lambda plan: with_memory(plan, bytes=128.5))


@attack("Memory.bytes is inf")
def memory_without_an_end() -> Subject:
    """Infinitely many bytes."""
    return of_layer(lambda plan: with_memory(plan, bytes=inf))


@attack("Memory.kind is 'eeprom'")
def memory_of_a_kind_that_does_not_exist() -> Subject:
    """Neither rom nor stream, so everything may be written."""
    return of_layer(lambda plan: with_memory(plan, kind="eeprom"))


@attack("Affine.base is ")
def address_that_no_machine_has() -> Subject:
    """Byte 2**70 of a memory that claims to have it."""
    return of_layer(lambda plan: moved(with_memory(plan, bytes=1 << 47), "y", 1 << 70))


@attack("Affine.base is ")
def address_at_the_end_of_64_bits() -> Subject:
    """An address that overflows where elements are counted on from it."""
    far = (1 << 62) - 4
    return of_layer(lambda plan: moved(with_memory(plan, bytes=1 << 47), "y", far))


@attack("buffers reach more than")
def address_in_a_memory_of_a_terabyte() -> Subject:
    """Within its memory, but a token for every cell below it is more than a machine holds."""
    return of_layer(lambda plan: moved(with_memory(plan, bytes=1 << 41), "y", 1 << 40))


@attack("buffers reach more than")
def scratch_in_a_memory_of_a_terabyte() -> Subject:
    """Nobody uses it, but it is looked after all the same."""
    plan, graph = layer()
    return with_buffers(with_memory(plan, bytes=1 << 41), scratch(1 << 40)), graph


@attack("Affine.strides is ")
def stride_that_overflows() -> Subject:
    """2**63 nibbles from one output to the next."""
    return of_layer(
        lambda plan: rebuffered(with_memory(plan, bytes=1 << 47), "y", map=Affine(16, (1 << 63,)))
    )


@attack("Table.cells is ")
def table_that_overflows() -> Subject:
    """A place at nibble 2**70."""
    return of_layer(
        lambda plan: rebuffered(with_memory(plan, bytes=1 << 47), "y", map=Table((16, 20, 1 << 70)))
    )


@attack("is not of its shape")
def negative_table() -> Subject:
    """A place at nibble -4, which numpy takes for one at the end."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Table((16, 20, -4))))


@attack("reaches nibbles")
def negative_address() -> Subject:
    """Byte -2, which numpy takes for one at the end."""
    return of_layer(lambda plan: moved(plan, "y", -2))


@attack("is not of its shape")
def negative_ring() -> Subject:
    """A ring of -3."""
    return of_layer(lambda plan: rebuffered(plan, "y", map=Affine(16, (4,), (-3,))))


@attack("Buffer.copies is ")
def copies_of_2_to_the_70() -> Subject:
    """More places than there are addresses, all in one."""
    return of_layer(lambda plan: rebuffered(plan, "y", copies=1 << 70))


@attack("are no places apart")
def frames_of_2_to_the_40() -> Subject:
    """More frames than anyone counts to, each in the same place."""
    plan, graph = layer()
    many = rebuffered(rebuffered(plan, "x", copies=1 << 40), "y", copies=1 << 40)
    return replace(many, frames=1 << 40), graph


@attack("a plan is for 1 to")
def no_frames() -> Subject:
    """0 frames of the input, 0 of the output."""
    return of_layer(lambda plan: replace(plan, frames=0))


@attack("a plan is for 1 to")
def negative_frames() -> Subject:
    """-1 frames."""
    return of_layer(lambda plan: replace(plan, frames=-1))


@attack("has 4611686018427387904 elements")
def shape_of_scratch_that_is_larger_than_any_memory() -> Subject:
    """2**62 elements that all lie in the same place."""
    plan, graph = layer()
    vast = Buffer("scratch", "", "sram", (1 << 31, 1 << 31), 8, Affine(128, (0, 0)), "scratch")
    return changed(with_buffers(plan, vast), scratch=("scratch",)), graph


@attack("share cells")
def scratch_of_a_billion_elements_in_one_place() -> Subject:
    """A map without strides: within its memory, but 2**30 elements to destroy one by one."""
    plan, graph = layer()
    vast = Buffer("scratch", "", "sram", (1 << 30,), 8, Affine(128, (2,), (4,)), "scratch")
    return changed(with_buffers(plan, vast), scratch=("scratch",)), graph
