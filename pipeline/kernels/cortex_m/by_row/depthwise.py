"""Depthwise 3x3 of a row in blocks, channel by channel: nothing is widened in memory."""

from __future__ import annotations

import numpy as np

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.by_row.base import RowKernel, Turns
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, MOST_PLANE, RowLayout
from pipeline.kernels.cortex_m.fast import convolution
from pipeline.kernels.cortex_m.quick import endings, quick_end
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made

TAPS = 3
TABLE_BYTES = 48
"""Bytes of the table for each channel."""

FARTHEST = 4095
"""Bytes from an address that a load reaches."""


class RowDepthwise(RowKernel):
    """Rows 0 and 1 are multiplied in pairs, one above the other, row 2 as its words come."""

    word = "row_depthwise"
    takes = (
        "depthwise 3x3 convolutions, strides 1 and 2 along rows, that make one row from rows in "
        f"blocks of {BLOCK} pixels, or of all where those are {MOST_PLANE} or fewer"
    )

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Conv2d) or found is None:
            return False
        source, target = found
        return (
            op.groups == source.channels == target.channels
            and form.graph.tensors[op.parameters[0]].shape[1:3] == (TAPS, TAPS)
            and op.dilation == (1, 1)
            and op.stride[1] in (1, 2)
            and op.padding[2] in (0, 1)
            and (target.columns - 1) * op.stride[1] - op.padding[2] + 1 < source.columns
            and source.blocked
            and (source.pixels == BLOCK or source.columns <= MOST_PLANE)
            and reach(source, op.stride[1], op.padding[2]) <= FARTHEST
            and quick_end(op, form.graph) is not None
        )

    def counts(self, form: Form) -> Counts:
        """Groups between the first and the last share a loop; words hold what a group reads of a
        block, two pixels or more."""
        source, target = self.known(form)
        op, number, left = convolution(form), len(groups(source, target)), source.columns
        words = sum(
            min(start + BLOCK, stop) - max(start, low) > 1
            for low, stop in self.reads(form)
            for start in range(low - low % BLOCK, left if source.plane else source.full, BLOCK)
            if start < stop and left >= BLOCK
        )
        return {
            "output": target.bytes,
            "word": target.channels * words,
            "group in a loop": target.channels * (number - 2) * (number > 3),
            "group of stride 2": target.channels * number * (op.stride[1] == 2),
            "pixel of a last block": 0 if source.plane else target.channels * (left - source.full),
            **endings(op, form.graph, made(form)),
        }

    def reads(self, form: Form) -> list[tuple[int, int]]:
        """Columns that each group loads: the first, and the one after the last."""
        op, (source, target) = convolution(form), self.known(form)
        return [
            (
                first * op.stride[1],
                min((first + count - 1) * op.stride[1] - op.padding[2] + TAPS, source.columns),
            )
            for first, count in groups(source, target)
        ]

    def table_bytes(self, form: Form) -> float:
        """In pairs of 16 bits, beside what sums begin with at either edge."""
        return TABLE_BYTES * self.known(form)[1].channels

    def turns(self, form: Form) -> Turns:
        """Channel by channel all groups of outputs."""
        source, target = self.known(form)
        found, reads = groups(source, target), self.reads(form)
        channel = len(found) * np.arange(source.channels)
        read = np.full(source.bytes, -1)
        written = np.zeros(target.bytes, dtype=np.int64)
        for turn, ((low, stop), (first, count)) in enumerate(zip(reads, found, strict=True)):
            for column in range(low, stop):
                read[source.places(column)] = channel + turn
            for column in range(first, first + count):
                written[target.places(column)] = channel + turn
        return Turns(read, written)


def groups(source: RowLayout, target: RowLayout) -> list[tuple[int, int]]:
    """Outputs that are computed together: the first one, and how many."""
    if source.plane and target.columns <= MOST_PLANE:
        return [(0, target.columns)]
    starts = range(0, target.columns, BLOCK)
    return [(first, min(BLOCK, target.columns - first)) for first in starts]


def reach(source: RowLayout, stride: int, pad: int) -> int:
    """The farthest that a group reads from its first block on."""
    if source.plane:
        return source.columns
    last = BLOCK * stride + (0 if pad else 1 - stride) + stride - 1
    return last // BLOCK * BLOCK * source.channels + BLOCK
