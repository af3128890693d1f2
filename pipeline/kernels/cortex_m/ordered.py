"""Convolutions and dense layers whose weights lie in a window, in the order that the tensor has:
two output channels at a time, of two pixels where both have all their windows inside."""

from __future__ import annotations

from math import prod

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made, positions, products


class Ordered(Fast):
    """Of weights in a window, as the tensor has them."""

    def why_not(self, form: Form) -> str:
        op, tensors = form.op, form.graph.tensors
        weights = form.parts.get(op.parameters[0]) if op.parameters else None
        can = (
            weights is not None
            and not form.partial
            and not form.overlaps
            and not any(weights.rings[1:])
            and not weights.around[0]
            and str(form.source.dtype) == "int8"
            and str(tensors[op.parameters[0]].dtype) == "int8"
            and tensors[op.parameters[0]].zero_point == 0
            and self.can(form)
        )
        return "" if can else f"{self.name} is for {self.takes}"


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
        )

    def counts(self, form: Form) -> Counts:
        rows, columns, channels = form.out.extents
        blocks = rows * -(-columns // 2) * -(-channels // 2)
        return {
            "product": products(form),
            "row of a window, two pixels and channels": blocks * positions(form)[0],
            "output": made(form),
        }


class OrderedDense(Ordered):
    word = "ordered_dense"
    takes = "dense layers, weights in a window, of an input in one piece, all of int8"

    def can(self, form: Form) -> bool:
        name = form.op.inputs[0]
        return isinstance(form.op, Dense) and form.in_one_piece(name) and form.covers(name)

    def counts(self, form: Form) -> Counts:
        return {"product": made(form) * prod(form.source.shape), "output": made(form)}
