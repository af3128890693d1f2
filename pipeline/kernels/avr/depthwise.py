"""Depthwise convolutions on an AVR: each pixel that is read is multiplied with all weights of a row
of the kernel, for up to five outputs at once."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.avr.rows import AvrRows, ends_in_24_bits
from pipeline.kernels.cortex_m.by_row.base import Turns
from pipeline.kernels.cortex_m.by_row.parts import Part
from pipeline.kernels.cortex_m.fast import convolution
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made, positions

MOST_ROWS, MOST_COLUMNS = 7, 3
"""Largest kernel: pointers to its rows beside the sums, a row's weights in registers."""

MOST_CHANNELS = 255
"""They are counted in one byte."""


class Depthwise(AvrRows):
    word = "depthwise"
    takes = (
        f"depthwise convolutions of up to {MOST_CHANNELS} channels, kernels of up to {MOST_ROWS} x "
        f"{MOST_COLUMNS}, that make whole rows from rows with channels last whose zero point is "
        "the least value, or without padding, and whose sums fit 24 bits"
    )
    most_pixels = 5
    costs: ClassVar[Counts] = {
        "product": 6.2, "pixel": 5.0, "row": 12.0, "output": 80.0, "channel of some pixels": 70.0,
        "call": 600.0,
    }  # fmt: skip

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Conv2d) or found is None:
            return False
        source, target = found
        rows, columns = positions(form)
        plain = form.source.zero_point == form.source.dtype.minimum or not any(op.padding)
        return (
            op.groups == source.channels == target.channels <= MOST_CHANNELS
            and rows <= MOST_ROWS
            and columns <= MOST_COLUMNS
            and plain
            and all(columns_read(form, part) for part in self.parts(form))
            and ends_in_24_bits(form)
        )

    def counts(self, form: Form) -> Counts:
        outputs, (rows, columns) = made(form), positions(form)
        parts = self.parts(form)
        each = form.out.extents[0] * form.target.shape[2]
        return {
            "product": outputs * rows * columns,
            "pixel": each * rows * sum(len(columns_read(form, part)) for part in parts),
            "row": each * rows * len(parts),
            "output": outputs,
            "channel of some pixels": each * len(parts),
            "call": form.out.extents[0] * len(parts),
        }

    def turns(self, form: Form) -> Turns:
        """Part by part, in each channel by channel."""
        source, target = self.known(form)
        read, written = np.full(source.bytes, -1), np.zeros(target.bytes, dtype=np.int64)
        for number, part in enumerate(self.parts(form)):
            turns = number * source.channels + np.arange(source.channels)
            for column in columns_read(form, part):
                read[source.places(column)] = turns
            for column in range(part.first, part.stop):
                written[target.places(column)] = turns
        return Turns(read, written)


def columns_read(form: Form, part: Part) -> dict[int, list[tuple[int, int]]]:
    """Map each input column, in order, that is inside of the image and that ``part`` is made of to
    the part's pixels and the taps that it is multiplied for."""
    op, found = convolution(form), dict[int, list[tuple[int, int]]]()
    for pixel in range(part.pixels):
        for tap in range(positions(form)[1]):
            column = (part.first + pixel) * op.stride[1] + tap * op.dilation[1] - op.padding[2]
            if 0 <= column < form.source.shape[1]:
                found.setdefault(column, []).append((pixel, tap))
    return dict(sorted(found.items()))
