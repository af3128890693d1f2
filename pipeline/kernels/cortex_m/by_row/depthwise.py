"""Depthwise of a row in blocks, channel by channel: nothing is widened in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.by_row import AccessOrder, RowKernel
from pipeline.kernels.cortex_m.fitted import Fitted
from pipeline.kernels.fast import convolution
from pipeline.kernels.form import Form
from pipeline.kernels.quick import endings, quick_end
from pipeline.kernels.row_layout import BLOCK, MOST_PLANE
from pipeline.kernels.work import Counts, made, positions

PAIRED = (3, 3)
"""A kernel whose first two rows are multiplied together, not row by row in a loop: of more weights
a small cache does not hold the code of that."""

WIDEST = 7
"""Columns of a kernel whose sums fit the registers."""

SUMS = 6
"""Sums that registers hold from row to row of a loop."""

TABLE_BYTES = 24
"""Bytes of a channel's table beside its weights."""


@dataclass(frozen=True)
class Unit:
    """Pixels of a row that are read at a time, and the outputs whose windows end among them."""

    pixels: range
    outs: range


class RowDepthwise(Fitted, RowKernel):
    """Each pixel is loaded once, and sums of windows that reach beyond a unit are carried on to the
    next."""

    word = "row_depthwise"
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
            and max(op.padding[2:]) < positions(form)[1] <= WIDEST
            and op.dilation[1] == 1
            and op.stride[1] in (1, 2)
            and source.blocked
            and quick_end(op, form.graph) is not None
        )

    def counts(self, form: Form) -> Counts:
        """Units between the first and the last share a loop; words hold two pixels or more."""
        (source, target), (rows, columns) = self.known(form), positions(form)
        found, channels, op = self.units(form), target.channels, convolution(form)
        lefts = [x * op.stride[1] - op.padding[2] for x in range(target.columns)]
        words = alone = kept = 0
        for unit in found:
            last, reach = unit.pixels[-1], unit.pixels[0] - columns
            kept += max(0, sum(reach < left <= last for left in lefts) - SUMS)
            for first in range(unit.pixels.start, unit.pixels.stop, BLOCK):
                used = min(unit.pixels.stop, first + BLOCK) - first
                loaded = used > 1 and first < source.full >= BLOCK
                words, alone = words + loaded, alone + used * (not loaded)
        taps = sum(min(x + columns, source.columns) - max(x, 0) for x in lefts)
        each, in_loop = channels * rows, channels * rows * ((rows, columns) != PAIRED)
        return {
            "output": target.bytes,
            "word": each * words,
            "pixel by itself": each * alone,
            "unit in a loop": channels * (len(found) - 2) * (len(found) > 3),
            "channel in units": channels * (len(found) > 1),
            "product in a loop": in_loop * taps,
            "pixel by itself in a loop": in_loop * alone,
            "sum in memory": in_loop * kept,
            **endings(op, form.graph, made(form)),
        }

    def units(self, form: Form) -> list[Unit]:
        """All of a row: blocks that give four outputs, or one of all pixels where these are few."""
        (source, target), columns = self.known(form), positions(form)[1]
        stride, pad = convolution(form).stride[1], convolution(form).padding[2]
        step = BLOCK * stride if source.columns > MOST_PLANE or not source.plane else source.columns
        ends = [min(x * stride - pad + columns, source.columns) for x in range(target.columns)]
        found, made = list[Unit](), 0
        for first in range(0, ends[-1], step):
            whole = sum(end <= first + step for end in ends)
            found.append(Unit(range(first, min(first + step, ends[-1])), range(made, whole)))
            made = whole
        return found

    def table_bytes(self, form: Form) -> float:
        """In pairs of 16 bits, beside what sums begin with, at either edge, too."""
        rows, columns = positions(form)
        return (4 * rows * max(2, columns - 2) + TABLE_BYTES) * self.known(form)[1].channels

    def access_order(self, form: Form) -> AccessOrder:
        """Channel by channel all units."""
        source, target = self.known(form)
        found = self.units(form)
        channel = len(found) * np.arange(source.channels)
        stages = ((channel + turn, unit.pixels, unit.outs) for turn, unit in enumerate(found))
        return AccessOrder.of(source, target, stages)
