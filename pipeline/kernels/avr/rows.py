"""Base of the kernels for an AVR: rows in, rows out, sums of 24 bits."""

from itertools import pairwise
from typing import ClassVar

import numpy as np

from pipeline.graph.families import Weighted
from pipeline.kernels.by_row import AccessOrder, RowKernel, RowLayout
from pipeline.kernels.fast import Fast, convolution
from pipeline.kernels.form import Form
from pipeline.kernels.quick import channel_sums, quick_end
from pipeline.kernels.safe_offset import SafeOffset
from pipeline.kernels.work import positions

REACH = 1 << 23
"""Bound that a sum of 24 bits stays below, sign and all."""

MOST_SHIFT = 16
"""Bits that a result is shifted right by, as one product and at most one byte."""


class AvrKernel(Fast):
    """Kernel of a layer with weights whose sums, and what they are scaled to, fit 24 bits."""

    core = "avr"


class AvrRows(AvrKernel, RowKernel):
    """Makes some rows of its output, all of each, from rows with channels last that lie anywhere.

    Attributes:
        most_pixels: of a row that are made together: their sums fill the registers.
        by_channel: each channel of them is written before the next one is read.
    """

    most_pixels: ClassVar[int]
    by_channel: ClassVar[bool] = False

    def rows(self, form: Form) -> tuple[RowLayout, RowLayout] | None:
        """Count as for one row; several are only made apart from what they are made of."""
        name, out = form.op.inputs[0], form.out.extents
        if len(form.parts) != 2 or len(out) != 3 or form.partial:
            return None
        if (out[0] > 1 and form.overlaps) or not form.covers(form.op.output, slice(1, 3)):
            return None
        both = RowLayout.of(form, name), RowLayout.of(form, form.op.output)
        source, target = both
        if source is None or target is None or source.pixels > 1 or target.pixels > 1:
            return None
        return source, target

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        """Follow ``access_order``, of a step that makes one row."""
        return super().overlap(form, tensor) if form.out.extents[0] == 1 else None

    def parts(self, form: Form) -> list[range]:
        """Split a row, from the first pixel on: into as few as possible, as alike as possible."""
        columns = form.target.shape[1]
        count = -(-columns // self.most_pixels)
        ends = [columns * n // count for n in range(count + 1)]
        return [range(low, high) for low, high in pairwise(ends)]

    def access_order(self, form: Form) -> AccessOrder:
        """Part by part, in each channel by channel or all of its windows first."""
        source, target = self.known(form)
        each = np.arange(source.channels if self.by_channel else 1)
        return AccessOrder.of(source, target, (
            (number * len(each) + each, columns_read(form, part), part)
            for number, part in enumerate(self.parts(form))
        ))  # fmt: skip


def columns_read(form: Form, part: range) -> dict[int, list[tuple[int, int]]]:
    """Map each input column, in order, that is inside of the image and that ``part`` is made of to
    the part's pixels and the taps that it is multiplied for."""
    op, found = convolution(form), dict[int, list[tuple[int, int]]]()
    for pixel in range(len(part)):
        for tap in range(positions(form)[1]):
            column = (part.start + pixel) * op.stride[1] + tap * op.dilation[1] - op.padding[2]
            if 0 <= column < form.source.shape[1]:
                found.setdefault(column, []).append((pixel, tap))
    return dict(sorted(found.items()))


def ends_in_24_bits(form: Form) -> bool:
    """Check whether all sums, and what they are scaled to before the last shift, fit 24 bits."""
    op = form.op
    assert isinstance(op, Weighted)
    end = quick_end(op, form.graph)
    if end is None:
        return False
    multipliers, offsets, shifts = end.constants.T
    known = multipliers == 0  # what a channel stores whatever its sum
    sums = channel_sums(op, form.graph) + form.graph.constants[op.parameters[1]][:, None]
    largest = abs(sums).max(axis=1)
    largest[known] = 0
    most = (largest * multipliers >> 31) + abs(offsets) + (128 << shifts) + 2
    return bool(largest.max() < REACH and most.max() < REACH and shifts.max() <= MOST_SHIFT)
