"""Attacks by form: slices, units, orders and maps of too many axes, or too few."""

from __future__ import annotations

from dataclasses import replace

from pipeline.plan.vocabulary import Affine, Finish, Move, Slice, Table, packed, whole
from tests.plan.adversarial import (
    Subject,
    attack,
    changed,
    halves,
    layer,
    of_layer,
    rebuffered,
    step_of,
    with_steps,
)


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
