"""Depthwise with windows of up to seven columns, of a row in blocks, channel by channel: the rows
under the kernel are widened first, so that neighbours are pairs."""

from __future__ import annotations

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.by_row.base import RowKernel
from pipeline.kernels.cortex_m.by_row.layout import BLOCK
from pipeline.kernels.cortex_m.depthwise import columns, odd_kernel, wide_bytes
from pipeline.kernels.cortex_m.fast import convolution
from pipeline.kernels.cortex_m.quick import endings, quick_end
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made, positions

WIDEST = 7
"""Columns of a kernel whose row of weights fits the registers beside four sums."""


class RowDepthwiseWide(RowKernel):
    """All that a channel's row is made of is read before it is written."""

    word = "row_depthwise_wide"
    takes = (
        f"depthwise convolutions, kernels of up to {WIDEST} columns, strides 1 and 2 along rows, "
        "that make one row from rows in blocks"
    )

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Conv2d) or found is None:
            return False
        source, target = found
        return (
            op.groups == source.channels == target.channels
            and positions(form)[1] <= WIDEST
            and op.dilation[1] == 1
            and op.stride[1] in (1, 2)
            and source.blocked
            and (target.blocked or target.pixels == 1)
            and quick_end(op, form.graph) is not None
        )

    def scratch_bytes(self, form: Form) -> int:
        return 2 * positions(form)[0] * columns(convolution(form), form.graph.tensors)

    def counts(self, form: Form) -> Counts:
        source, target = self.known(form)
        op, rows, half = convolution(form), positions(form)[0], odd_kernel(positions(form)[1]) // 2
        computed = target.columns + target.columns % 2 * (op.stride[1] == 1)
        words, single = divmod(source.columns, BLOCK)
        each = target.channels * rows
        return {
            "pair of taps": each * computed * (half + 1),
            "output": target.bytes,
            "word widened": each * words,
            "word moved": each * words * (op.padding[2] % 2),
            "byte widened": each * single,
            "row widened": each,
            **endings(convolution(form), form.graph, made(form)),
        }

    def table_bytes(self, form: Form) -> float:
        return wide_bytes(positions(form)) * form.target.shape[2]
