"""Limits of portable C: what it can't compute, in words that fit behind the operator's name."""

from collections.abc import Iterator

from pipeline.graph.families import Pairwise
from pipeline.graph.operators.along import ArgMax, Normalize, Softmax
from pipeline.graph.operators.conv2d import TransposeConv
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Pad, Rearrange, Reshape
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.operators.recurrent import Recurrent, TimeFilter
from pipeline.graph.requant import FixedPoint
from pipeline.kernels.form import Form

UNRINGED = ArgMax | Normalize | Pad | Rearrange | Recurrent | Reshape | Softmax | TimeFilter
LONGEST_SOFTMAX = 4095
"""Values whose exponentials, in Q12.19, add up to less than 32 bits."""


def why_not(form: Form) -> str:
    """Return the first reason; "" where there is none."""
    return next(_reasons(form), "")


def _reasons(form: Form) -> Iterator[str]:
    for name, part in form.parts.items():
        if part.bits < 8:
            yield (
                f"code for this core has elements of whole bytes, {name} has {part.bits} bits; try "
                "quantize=int8, or hardware=arduino target=host"
            )
    if form.partial and not form.op.accumulates:
        yield f"no code for partial sums of {type(form.op).__name__}"
    if form.op.slides:
        yield from _of_windows(form)
    if form.op.element_wise:
        yield from _of_elements(form)
    rings = any(any(part.around) for part in form.parts.values())
    if rings and isinstance(form.op, UNRINGED):
        yield "code for this core cannot follow a ring here"
    match form.op:
        case Pad() if form.overlaps:
            yield "code for this core pads apart from its input"
        case Rearrange():
            if form.overlaps and max(form.op.repeats) > 1:
                yield "code for this core repeats elements apart from its input"
            parts = (part for part in form.parts.values() if part.spread in ("rows", "blocks"))
            if any(part.extents[0] > 1 for part in parts):
                yield "code for this core rearranges a row at a time, or tensors in one piece"
        case ArgMax() if form.given.spread != "strides" or any(form.given.around):
            yield "code for this core compares what lies at even distances"
        case Normalize() if not all(
            form.covers(form.op.output, slice(axis, axis + 1)) for axis in form.op.axes
        ):
            yield "code for this core normalizes all at once that is normalized together"
        case TransposeConv() if form.out.spread not in ("strides", "rows") or any(form.out.rings):
            yield "code for this core makes an image in one piece, or rows"
        case Recurrent() | TimeFilter() if not all(
            name in form.op.parameters or (form.covers(name) and part.spread == "strides")
            for name, part in form.parts.items()
        ):
            yield "code for this core has sequences and states whole, each in one piece"
        case Recurrent() | TimeFilter() if set(form.op.parameters) & {*form.parts}:
            yield "code for this core reads the weights of cells where they are stored"
        case Reshape() if not (form.covers(form.op.inputs[0]) and form.covers(form.op.output)):
            yield "code for this core reshapes a tensor all at once"
        case Softmax():
            extent = form.source.shape[-1]
            if not form.covers(form.op.output, slice(-1, None)):
                yield "code for this core computes rows of a softmax whole"
            if extent > LONGEST_SOFTMAX:
                yield f"a softmax over {extent} values, {LONGEST_SOFTMAX} are possible"


def _of_windows(form: Form) -> Iterator[str]:
    op, tensors = form.op, form.graph.tensors
    if op.weighted:
        weights, source = tensors[op.parameters[0]], form.source
        if weights.dtype.bits > 8 or not weights.dtype.signed:
            yield f"its weights are {weights.dtype}; code for this core takes int8"
        if source.dtype.bits > 16:
            yield f"it multiplies {source.dtype} elements; this core's code takes 8 or 16 bits"
    elif form.partial and isinstance(op, AveragePool2d) and any(op.padding):
        yield "code for this core ends padded averages in one step"
    for name, part in form.parts.items():
        for axis, around in enumerate(part.around):
            if name in op.parameters:  # rows, and of a part of sums the channels
                followed = axis == 0 or (form.partial and axis == len(part.around) - 1)
            elif name == op.output:  # written element by element
                followed = True
            else:
                followed = axis < 2 and len(part.around) > 2
            if around and not followed:
                yield f"code for this core cannot follow the ring of {name} along axis {axis} here"


def _of_elements(form: Form) -> Iterator[str]:
    op, tensors = form.op, form.graph.tensors
    if type(op) is Lookup and form.source.dtype.bits != 8:
        yield f"a table is for elements of 8 bits, not {form.source.dtype}"
    if isinstance(op, Add):
        for name, requant in zip(op.operands, op.operand_requants, strict=True):
            if not isinstance(requant, FixedPoint):
                yield f"{name} is added by shifts; code for this core has multipliers"
            elif len(requant.multipliers) > 1:
                yield f"{name} has several multipliers, one is possible"
    ends = getattr(op, "requant", None)
    if isinstance(ends, FixedPoint) and len(ends.multipliers) > 1:
        yield "element by element there is one multiplier, not several"
    for name in op.parameters:
        if tensors[name].dtype.bits not in ((8, 16) if isinstance(op, Pairwise) else (8,)):
            yield f"the constant {name} is {tensors[name].dtype}, not of 8 bits"
    if isinstance(op, Pairwise):
        for name in op.inputs:  # what is broadcast is read again after what is in its place
            if name in form.overlaps and tensors[name].shape != form.target.shape:
                yield f"the plan overwrites {name}, which is read again"
