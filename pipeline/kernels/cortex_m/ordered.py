"""Convolutions and dense layers whose weights lie in a window, in the order that the tensor has:
two output channels at a time, of two pixels where both have all their windows inside."""

from math import prod

from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.fast import convolution, pairs
from pipeline.kernels.form import Form
from pipeline.kernels.taps import inside
from pipeline.kernels.work import Counts, made, positions


class Ordered(Fitted):
    word = "ordered"
    of_windows = True
    takes = (
        "convolutions of one group, of rows in one piece, and dense layers of an input in one "
        "piece, weights in a window, all of int8"
    )

    def can(self, form: Form) -> bool:
        op, given, tensors = form.op, form.op.inputs[0], form.graph.tensors
        weights = form.parts.get(op.parameters[0]) if op.parameters else None
        if weights is None or form.partial or form.overlaps:
            return False
        if isinstance(op, Dense):
            able = form.in_one_piece(given) and form.covers(given)
        else:
            plain = isinstance(op, Conv2d) and (op.groups, *op.dilation) == (1, 1, 1)
            able = plain and form.in_packed_rows(given) and not form.given.around[2]
        return (
            able
            and not any(weights.rings[1:])
            and not weights.around[0]
            and all(str(tensors[name].dtype) == "int8" for name in (given, op.parameters[0]))
            and tensors[op.parameters[0]].zero_point == 0
        )

    def counts(self, form: Form) -> Counts:
        """Two pixels and two channels take as long where there is but one of either; what lies in
        the padding takes nothing, and a window that is partly there has no second beside it."""
        if isinstance(form.op, Dense):
            return {"word, two channels": pairs(made(form)) * prod(form.source.shape) / 4}
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
