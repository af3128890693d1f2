"""Convolutions and dense layers whose weights lie in a window, in the order that the tensor has:
two output channels at a time, of two pixels where both have all their windows inside."""

from __future__ import annotations

from math import prod

from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.kernels.cortex_m.fitted import Fitted
from pipeline.kernels.fast import convolution, pairs
from pipeline.kernels.form import Form
from pipeline.kernels.taps import inside
from pipeline.kernels.work import Counts, made, positions


class Ordered(Fitted):
    """Kernel for weights in a window, ordered as the tensor has them."""

    of_windows = True

    def can(self, form: Form) -> bool:
        op, tensors = form.op, form.graph.tensors
        weights = form.parts.get(op.parameters[0]) if op.parameters else None
        return (
            weights is not None
            and not form.partial
            and not form.overlaps
            and not any(weights.rings[1:])
            and not weights.around[0]
            and all(str(tensors[name].dtype) == "int8" for name in (op.inputs[0], op.parameters[0]))
            and tensors[op.parameters[0]].zero_point == 0
        )


class OrderedConvolution(Ordered):
    word = "ordered_conv2d"
    takes = "convolutions of one group, weights in a window, rows in one piece, all of int8"

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Conv2d)
            and op.groups == 1
            and op.dilation == (1, 1)
            and form.in_packed_rows(op.inputs[0])
            and not form.parts[op.inputs[0]].around[2]
            and super().can(form)
        )

    def counts(self, form: Form) -> Counts:
        """Two pixels and two channels take as long where there is but one of either; what lies in
        the padding takes nothing, and a window that is partly there has no second beside it."""
        op, tensors, depth = convolution(form), form.graph.tensors, form.source.shape[2]
        (rows, columns, channels), wide = form.out.extents, positions(form)[1]
        down, across = ([*map(len, inside(op, tensors, axis))] for axis in (0, 1))
        whole = across.count(wide)
        windows = [wide] * pairs(whole) + [taken for taken in across if taken < wide]
        share = rows / len(down) * columns / len(across) * pairs(channels)
        at_once = share * sum(down)
        return {
            "word, two pixels and channels": at_once * sum(n * depth // 4 for n in windows),
            "byte left over": at_once * sum(n * depth % 4 for n in windows),
            "row of a window, two pixels and channels": at_once * len(windows),
            "two pixels and channels": share * len(down) * len(windows),
            "output": made(form),
        }


class OrderedDense(Ordered):
    word = "ordered_dense"
    takes = "dense layers, weights in a window, of an input in one piece, all of int8"

    def can(self, form: Form) -> bool:
        name, taken = form.op.inputs[0], isinstance(form.op, Dense) and super().can(form)
        return taken and form.in_one_piece(name) and form.covers(name)

    def counts(self, form: Form) -> Counts:
        return {"word, two channels": pairs(made(form)) * prod(form.source.shape) / 4}
