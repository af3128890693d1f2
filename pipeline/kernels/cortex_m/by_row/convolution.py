"""Convolutions of a row: windows of up to four pixels are widened, then all channels are made of
them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.by_row.base import RowKernel, Turns
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout
from pipeline.kernels.cortex_m.by_row.parts import Part, pairs_at_once, parts
from pipeline.kernels.cortex_m.conv2d import Rows
from pipeline.kernels.cortex_m.fast import convolution, pairs
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.cortex_m.quick import endings, quick_end
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made, positions

MOST_WIDE = 32
"""Columns that are widened all together."""

MOST_LINE = 256
"""Bytes of a window that are copied to the stack."""


class RowConvolution(RowKernel):
    """Convolution of one group, with two output channels or more.

    Attributes:
        most: groups of a window in the code of the innermost loop: with what is around it a
            kilobyte of instruction cache holds no more.
        reads_first: all windows are widened before anything is written.
    """

    most: ClassVar[int]
    reads_first: ClassVar[bool] = False

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Conv2d) or op.groups > 1 or found is None:
            return False
        source, target = found
        return (
            target.channels > 1
            and (target.blocked or target.pixels == 1)
            and self.fits(form, source, target)
            and Rows.of(op, form.graph.tensors).size > 0
            and quick_end(op, form.graph) is not None
        )

    def fits(self, form: Form, source: RowLayout, target: RowLayout) -> bool:
        raise NotImplementedError

    def parts(self, form: Form) -> Sequence[Part]:
        """In the order in which they are made."""
        return parts(self.known(form)[1])

    def some(self, form: Form) -> Rows:
        """Return what windows are gathered from."""
        rows, columns = positions(form)
        return Rows(range(rows), range(columns), form.source.shape[2], by_tap=False)

    def window(self, form: Form) -> tuple[int, int]:
        """Words of a pixel's window, and of the windows of the largest part."""
        some = self.some(form)
        each = len(some.rows) * len(some.columns) * pairs(some.channels)
        return each, each * max(part.pixels for part in self.parts(form))

    def scratch_bytes(self, form: Form) -> int:
        return 4 * self.window(form)[1]

    def counts(self, form: Form) -> Counts:
        op, (window, _) = convolution(form), self.window(form)
        every, channels = self.parts(form), form.target.shape[2]
        groups = [-(-channels // (2 * self.at_once(part, form))) for part in every]
        loaded = sum(part.pixels * number for part, number in zip(every, groups, strict=True))
        two = -(-channels // 2)
        return {
            "word of a pair of channels": len(every) * two * window,
            "word of a pixel and a pair": form.target.shape[1] * two * window,
            "word of a pixel": window * loaded,
            "round": sum(groups) * (window // self.taps(form) // self.unroll(form)),
            "output": form.target.shape[1] * channels,
            "word of windows": self.gathered(form),
            "call": 1,
            **endings(op, form.graph, made(form)),
        }

    def taps(self, form: Form) -> int:
        """Words of a window that the innermost loop takes at once."""
        return len(self.some(form).columns)

    def unroll(self, form: Form) -> int:
        """Return how many groups of ``taps`` a round of the innermost loop takes."""
        return unrolled(self.window(form)[0] // self.taps(form), self.most)

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        return len(self.parts(form))

    def gathered(self, form: Form) -> float:
        """Words of windows that a row takes."""
        once = self.window(form)[1]
        if self.reads_first:
            return once
        return once * form.target.shape[1] / max(part.pixels for part in self.parts(form))

    def at_once(self, part: Part, form: Form) -> int:
        """Pairs of output channels that are made together."""
        return pairs_at_once(part.pixels, form.target.shape[2], 4 * self.window(form)[0])

    def turns(self, form: Form) -> Turns:
        """Part by part; what the part before has widened is not read again."""
        op, (source, target) = convolution(form), self.known(form)
        written = np.zeros(target.bytes, dtype=np.int64)
        if self.reads_first:
            return Turns(np.zeros(source.bytes, np.int64), written)
        read, columns = np.full(source.bytes, -1), positions(form)[1]
        for turn, part in enumerate(self.parts(form)):
            first = part.first * op.stride[1] - op.padding[2]
            stop = first + (part.pixels - 1) * op.stride[1] + columns
            low = self.begins(form, part, first)
            for column in range(max(0, low), min(stop, source.columns)):
                read[source.places(column)] = turn
            for column in range(part.first, part.stop):
                written[target.places(column)] = turn
        return Turns(read, written)

    def begins(self, form: Form, part: Part, first: int) -> int:
        """The first column that is read for a part whose windows begin at ``first``."""
        return first


class RowPointwise(RowConvolution):
    """From the last pixels to the first where the output has more channels, so that it may lie over
    its input."""

    word = "row_pointwise"
    takes = (
        "1x1 convolutions of one group, strides 1 and 2 along rows, that make one row, two or more "
        "channels, from rows in blocks"
    )
    most = 8

    def fits(self, form: Form, source: RowLayout, target: RowLayout) -> bool:
        op = convolution(form)
        plain = (positions(form), op.padding[2:]) == ((1, 1), (0, 0)) and op.padding[0] == 0
        return plain and op.stride[1] in (1, 2) and source.blocked

    def parts(self, form: Form) -> Sequence[Part]:
        source, target = self.known(form)
        found = parts(target, source, convolution(form).stride[1])
        return found[::-1] if target.bytes > source.bytes else found


class RowFused(RowPointwise):
    """Two channels of all pixels at a time, so that weights are read from flash once a row. That is
    slower where flash has no waits, but for few channels, or where a cache loses them meanwhile.
    """

    word = "row_fused"
    priced = "row_wide"
    takes = (
        "1x1 convolutions of one group that make one row, two or more channels, from rows in one "
        f"block of more than {BLOCK} pixels, on boards whose flash has waits"
    )
    reads_first = True
    most_pixels = 40
    """Times groups in the code of all pixels."""

    def fits(self, form: Form, source: RowLayout, target: RowLayout) -> bool:
        block = source.plane and source.columns > BLOCK and convolution(form).stride[1] == 1
        return block and super().fits(form, source, target)

    def parts(self, form: Form) -> Sequence[Part]:
        source, target = self.known(form)
        return parts(target, source)

    def unroll(self, form: Form) -> int:
        return unrolled(self.window(form)[0], self.most_pixels // form.source.shape[1])

    def at_once(self, part: Part, form: Form) -> int:
        return 1

    def window(self, form: Form) -> tuple[int, int]:
        each, _ = super().window(form)
        return each, each * form.source.shape[1]

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        """Once where a cache holds a pair's weights until the last pixels need them; beside them
        and the table of what ends the sums half of it has room for little else."""
        kept = 4 * self.window(form)[0] <= cached_bytes // 2
        return 1 if kept else len(self.parts(form))


class RowSpatial(RowConvolution):
    """Neighbouring windows share what is widened: a column is widened once for four pixels."""

    word = "row_conv2d"
    priced = "row_wide"
    takes = (
        "convolutions of one group, 3 columns wide, strides 1 and 2 along rows, that make one row, "
        f"two or more channels, from rows in blocks of {BLOCK} pixels, all whole"
    )
    most = 3

    def fits(self, form: Form, source: RowLayout, target: RowLayout) -> bool:
        op = convolution(form)
        stride, pad = op.stride[1], op.padding[2]
        return (
            positions(form)[1] == 3
            and op.dilation[1] == 1
            and stride in (1, 2)
            and pad in (0, 1)
            and (stride, pad) != (1, 0)
            and source.pixels == BLOCK
            and target.columns % BLOCK == 0
            and source.columns == stride * target.columns
        )

    def parts(self, form: Form) -> Sequence[Part]:
        return [Part(first, BLOCK) for first in range(0, form.target.shape[1], BLOCK)]

    def window(self, form: Form) -> tuple[int, int]:
        each, columns = super().window(form)[0], positions(form)[1]
        return each, each // columns * ((BLOCK - 1) * convolution(form).stride[1] + columns)

    def begins(self, form: Form, part: Part, first: int) -> int:
        """The column left of a block is kept."""
        return first + convolution(form).padding[2] * (part.first > 0)


class RowWide(RowConvolution):
    """All columns of the rows under the kernel are widened first, for all pixels: where none can do
    with less scratch."""

    word = "row_wide"
    takes = (
        "convolutions of one group, windows of several pixels, dilated or not, that make one row, "
        f"two or more channels, from rows in blocks of up to {MOST_WIDE} columns"
    )
    reads_first = True
    most = 3

    def fits(self, form: Form, source: RowLayout, target: RowLayout) -> bool:
        small = RowSpatial().fits(form, source, target)
        wide = positions(form) != (1, 1) and source.blocked and source.columns <= MOST_WIDE
        return wide and not small

    def some(self, form: Form) -> Rows:
        """Only columns that lie inside of the image for some pixel."""
        inside = Rows.of(convolution(form), form.graph.tensors)
        return inside._replace(rows=range(positions(form)[0]), by_tap=False)

    def window(self, form: Form) -> tuple[int, int]:
        each, columns = super().window(form)[0], len(self.some(form).columns)
        return each, each // columns * columns_widened(convolution(form), form.graph.tensors)[1]


def columns_widened(op: Conv2d, tensors: Tensors) -> tuple[int, int]:
    """Count the columns that windows reach left of the image, and those that there are in all."""
    taps, width = Rows.of(op, tensors).columns, tensors[op.inputs[0]].shape[1]
    low = min(0, taps[0] * op.dilation[1] - op.padding[2])
    last = (tensors[op.output].shape[1] - 1) * op.stride[1] - op.padding[2]
    return -low, max(width, last + taps[-1] * op.dilation[1] + 1) - low


class RowImage(RowConvolution):
    """Few channels, side by side: windows are copied to a line of bytes first."""

    word = "row_image"
    takes = (
        f"convolutions of one group, windows of up to {MOST_LINE} elements, that make one row, two "
        "or more channels, from rows with channels last"
    )
    most = 6

    def fits(self, form: Form, source: RowLayout, target: RowLayout) -> bool:
        return (
            source.pixels == 1
            and convolution(form).dilation[1] == 1
            and prod(positions(form)) * source.channels <= MOST_LINE
            and positions(form) != (1, 1)
        )

    def taps(self, form: Form) -> int:
        return 1

    def window(self, form: Form) -> tuple[int, int]:
        each = 2 * self.some(form).words
        return each, each * max(part.pixels for part in self.parts(form))
