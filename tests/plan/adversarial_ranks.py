"""Attacks by form: slices, units, orders and maps of too many axes, or too few."""

from __future__ import annotations

from dataclasses import replace

from pipeline.plan.vocabulary import Affine, Finish, Move, Slice, Table, packed, whole
from tests.plan.adversarial import (
    Subject,
    attack,
    buffer,
    changed,
    halves,
    layer,
    of_layer,
    on_layer,
    rebuffered,
    step,
    step_of,
    with_steps,
)


@attack("has not its 2 axes")
def slice_of_too_few_axes() -> Subject:
    """One index into weights of two axes."""
    plan, graph = layer()
    x, _, bias = step_of(plan).ins
    return changed(plan, ins=(x, Slice("y.weight", (0,), (3,)), bias)), graph


on_layer(
    # Two indices into an output of one axis.
    ("slice_of_too_many_axes", "has not its 1 axes", step(out=Slice("y", (0, 0), (3, 1)))),
    # No index at all.
    ("slice_without_axes", "has not its 1 axes", step(out=Slice("y", (), ()))),
    # ``lo`` and ``size`` are of two ranks.
    (
        "slice_with_more_corners_than_extents",
        "has not its 1 axes",
        step(out=Slice("y", (0, 0), (3,))),
    ),
)


@attack("has not its 1 axes")
def empty_slice_of_too_many_axes() -> Subject:
    """Nothing is moved, of a rank that there is not."""
    none = Slice("x", (0, 0), (0, 0))
    return of_layer(lambda plan: with_steps(plan, step_of(plan), Move(none, none)))


on_layer(
    # Blocks of two axes for an output of one.
    ("unit_of_too_many_axes", "units of", step(unit=(1, 1))),
    # Blocks of no elements.
    ("unit_of_nothing", "units of", step(unit=(0,))),
    # Blocks of -1 elements.
    ("negative_unit", "units of", step(unit=(-1,))),
)


@attack("units of")
def unit_of_a_finish_of_too_many_axes() -> Subject:
    """Blocks of two axes for sums of one."""
    plan, graph = halves()
    *steps, last = plan.tracks[0].steps
    assert isinstance(last, Finish)
    return with_steps(plan, *steps, replace(last, unit=(1, 1))), graph


on_layer(
    # Origins of two axes for an output of one.
    (
        "order_of_too_many_axes",
        "names places that have not its axes",
        step(order=((0, 0), (1, 0), (2, 0))),
    ),
    # Three origins that are nowhere.
    ("order_of_no_axes", "names places that have not its axes", step(order=((), (), ()))),
    # Outputs 0, 1 and 1 of three.
    ("order_that_repeats", "the origin of each unit once", step(order=((0,), (1,), (1,)))),
    # Blocks of two that begin at 1.
    ("order_beside_the_units", "the origin of each unit once", step(unit=(2,), order=((0,), (1,)))),
    # A fourth output.
    ("order_beyond_the_end", "the origin of each unit once", step(order=((0,), (1,), (3,)))),
    # Output -1, which Python takes for the last one.
    ("negative_order", "the origin of each unit once", step(order=((0,), (1,), (-1,)))),
    # One stride for weights of two axes.
    ("map_of_too_few_axes", "is not of its shape", buffer("y.weight", map=Affine(0, (2,)))),
    # Two strides for an output of one axis.
    ("map_of_too_many_axes", "is not of its shape", buffer("y", map=Affine(16, (4, 4)))),
    # One ring for weights of two axes.
    (
        "rings_of_too_few_axes",
        "is not of its shape",
        buffer("y.weight", map=Affine(0, (8, 2), (3,))),
    ),
    # Two places for three outputs.
    ("table_that_is_too_short", "is not of its shape", buffer("y", map=Table((16, 20)))),
    # No places at all.
    ("table_of_nothing", "is not of its shape", buffer("y", map=Table(()))),
    # A shape of no axes, as of a single number.
    ("buffer_without_axes", "buffer y is empty", buffer("y", shape=(), map=Affine(16, ()))),
)


@attack("does not have the shape")
def buffer_of_another_shape() -> Subject:
    """As many weights, in four rows of three."""
    plan, graph = layer()
    turned = rebuffered(plan, "y.weight", shape=(4, 3), map=packed((4, 3), 8))
    step = step_of(plan)
    ins = (step.ins[0], whole(turned.buffer["y.weight"]), step.ins[2])
    return changed(turned, ins=ins), graph
