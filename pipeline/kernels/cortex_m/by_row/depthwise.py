"""Depthwise 3x3 of a row in blocks, channel by channel: nothing is widened in memory."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Unit:
    """Pixels of a row that are read at a time, and the outputs whose windows end among them."""

    pixels: range
    outs: range


class RowDepthwise(RowKernel):
    """Rows 0 and 1 are multiplied in pairs, one above the other; each pixel is loaded once, and
    sums of windows that reach beyond a unit are carried on to the next."""

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
            and BLOCK * source.channels < FARTHEST
            and quick_end(op, form.graph) is not None
        )

    def counts(self, form: Form) -> Counts:
        """Units between the first and the last share a loop; words hold two pixels or more."""
        source, target = self.known(form)
        found, channels = self.units(form), target.channels
        words = alone = 0
        for unit in found:
            for first in range(unit.pixels.start, unit.pixels.stop, BLOCK):
                used = min(unit.pixels.stop, first + BLOCK) - first
                loaded = used > 1 and first < source.full >= BLOCK
                words, alone = words + loaded, alone + used * (not loaded)
        return {
            "output": target.bytes,
            "word": channels * words,
            "pixel by itself": channels * alone,
            "unit in a loop": channels * (len(found) - 2) * (len(found) > 3),
            "channel in units": channels * (len(found) > 1),
            **endings(convolution(form), form.graph, made(form)),
        }

    def units(self, form: Form) -> list[Unit]:
        op, (source, target) = convolution(form), self.known(form)
        return units(op, source, target)

    def table_bytes(self, form: Form) -> float:
        """In pairs of 16 bits, beside what sums begin with at either edge."""
        return TABLE_BYTES * self.known(form)[1].channels

    def turns(self, form: Form) -> Turns:
        """Channel by channel all units."""
        source, target = self.known(form)
        found = self.units(form)
        channel = len(found) * np.arange(source.channels)
        read = np.full(source.bytes, -1)
        written = np.zeros(target.bytes, dtype=np.int64)
        for turn, unit in enumerate(found):
            for column in unit.pixels:
                read[source.places(column)] = channel + turn
            for column in unit.outs:
                written[target.places(column)] = channel + turn
        return Turns(read, written)


def units(op: Conv2d, source: RowLayout, target: RowLayout) -> list[Unit]:
    """All of a row: blocks that give four outputs, or one of all pixels."""
    stride, pad = op.stride[1], op.padding[2]
    step = source.columns if source.plane else BLOCK * stride
    ends = [min(x * stride - pad + TAPS, source.columns) for x in range(target.columns)]
    found, made = list[Unit](), 0
    for first in range(0, ends[-1], step):
        whole = sum(end <= first + step for end in ends)
        found.append(Unit(range(first, min(first + step, ends[-1])), range(made, whole)))
        made = whole
    return found
