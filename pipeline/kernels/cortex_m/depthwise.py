"""Depthwise convolution: rows of four channels are taken apart, so that neighbours are pairs; where
a pass has fewer, those of one. Of a row in blocks, channel by channel: nothing is widened.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.by_row import BLOCK, MOST_PLANE, AccessOrder, RowKernel
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.fast import convolution, in_passes, in_place
from pipeline.kernels.form import Form
from pipeline.kernels.kernel import LEAST_CACHE
from pipeline.kernels.quick import endings, quick_end
from pipeline.kernels.work import END_BYTES, Counts, made, positions

LANES = 4
"""Channels that one word holds."""

WIDEST = 9
"""Columns of a kernel whose row of weights fits the registers beside some sums."""

FEW = 2
"""Outputs of a row that read a row of weights once, which takes longer than their products."""

PAIRED = (3, 3)
"""A kernel whose first two rows are multiplied together, not row by row in a loop: of more weights
a small cache does not hold the code of that."""

WIDEST_ROW = 7
"""Columns of a kernel whose sums fit the registers."""

SUMS = 6
"""Sums that registers hold from row to row of a loop."""

TABLE_BYTES = 24
"""Bytes of a channel's table beside its weights."""


REGISTERS = 12
"""Registers there are, but those that point to inputs and weights."""

INSTRUCTION_BYTES, ROW_BYTES = 3.9, 40
"""Code of a block's instruction, and what finds a kernel's row: mean of MCUNet-M's layers."""


@dataclass(frozen=True)
class Block:
    """``outs`` outputs of a kernel's row with ``half`` pairs of weights and one weight more."""

    outs: int
    half: int
    stride: int

    @property
    def weights(self) -> int:
        """Words of weights: with stride 2 only the last b is needed."""
        return 2 * self.half if self.stride == 1 else self.half + 1

    @property
    def words(self) -> int:
        return self.outs * self.stride // 2 + self.half

    @property
    def inputs(self) -> int:
        """Registers for inputs; less than 1: it takes more than there are."""
        return min(self.words, REGISTERS - self.outs - self.weights)

    def instructions(self, rows: int) -> int:
        """About how many a kernel of ``rows`` such rows takes, with what ends its outputs."""
        products = self.outs * (self.half + 1)
        return rows * (self.weights + self.words + products) + 5 * self.outs + 15


def blocks(columns: int, rows: int, half: int, stride: int) -> tuple[int, int]:
    """Choose how many outputs of ``columns`` to compute at a time, and the last, of stride 1 pairs;
    0: none are left."""

    def last(outs: int) -> int:
        left = columns % outs
        return left + left % 2 if stride == 1 else left

    def cost(outs: int) -> int:
        ending = Block(last(outs), half, stride).instructions(rows) if last(outs) else 0
        return columns // outs * Block(outs, half, stride).instructions(rows) + ending

    outs = min((n for n in (2, 4, 6) if Block(n, half, stride).inputs > 0), key=cost)
    return outs, last(outs)


class Depthwise(Fitted):
    """Each channel is computed from itself, with the strides that there is code for."""

    word = "depthwise"
    takes = (
        f"depthwise convolutions, {LANES} or more channels, strides 1 and 2 along rows, kernels of "
        f"up to {WIDEST} columns"
    )

    def can(self, form: Form) -> bool:
        op, tensors = form.op, form.graph.tensors
        return (
            isinstance(op, Conv2d)
            and op.groups == form.target.shape[2] == form.source.shape[2] >= LANES
            and op.dilation == (1, 1)
            and op.stride[1] in (1, 2)
            and tensors[op.parameters[0]].shape[2] <= WIDEST
            and in_passes(form, lanes(form.out.extents[2]))
            and form.in_rows(op.inputs[0])
            and (not form.overlaps or self.takes_place(form))
        )

    def takes_place(self, form: Form) -> bool:
        """Check that no row is written before it is read, and no channel computed twice."""
        op, channels, at_once = convolution(form), form.target.shape[2], form.out.extents[2]
        group, rows = lanes(at_once), form.graph.tensors[op.parameters[0]].shape[1]
        return (
            in_place(form)
            and form.covers(op.output, slice(0, 2))
            and at_once % group == 0 == channels % at_once % group
            and rows > op.padding[0]
        )

    def unit(self, form: Form) -> tuple[int, ...]:
        """Return a channel, where it takes the place of what it is made of: rows are read into the
        scratch before the row is written that lies there."""
        return (*form.out.extents[:2], 1) if form.overlaps else super().unit(form)

    def counts(self, form: Form) -> Counts:
        op, tensors, channels = convolution(form), form.graph.tensors, form.out.extents[2]
        rows, width = form.out.extents[:2]
        kernel_h, kernel_w = positions(form)
        at_once, height = lanes(channels), form.source.shape[0]
        groups, outputs = -(-channels // at_once), rows * width * channels
        wide = op.stride[1] == 2
        # rows that the step before has widened are widened again
        passed = (rows - 1) * op.stride[0] + kernel_h
        read, lead = min(height, passed), op.padding[2] % 2
        pairs, alone = divmod(form.source.shape[1] - lead, 2)
        words = at_once * columns(op, tensors) // 2
        computed = outputs if wide else outputs + rows * channels * (width % 2)
        return {
            "pair of taps": computed * kernel_h * (odd_kernel(kernel_w) // 2 + 1),
            "output": outputs,
            "output of stride 2": outputs * wide,
            "row of a channel": rows * channels * (width > FEW),
            "row of weights for few outputs": rows * channels * kernel_h * (width <= FEW),
            "pixel widened": groups * read * (lead + alone),
            "pair widened alone": groups * read * pairs * (at_once == 1),
            "word outside": groups * words * (kernel_h + passed - read),
            **endings(op, form.graph, outputs),
        }

    def loop_bytes(self, form: Form) -> int:
        """Count what each row of a channel reads of the code of its blocks, where a cache of 1 KiB
        holds it no longer: once, or each time where it doesn't even hold one of them."""
        op, (rows, width, channels) = convolution(form), form.out.extents
        (height, across), stride = positions(form), op.stride[1]
        half = odd_kernel(across) // 2
        outs, left = blocks(width, height, half, stride)
        full, last = (
            int(INSTRUCTION_BYTES * Block(n, half, stride).instructions(height)) * (n > 0)
            for n in (outs, left)
        )
        every = (full if width >= outs else 0) + last + ROW_BYTES * height
        again = full * max(0, width // outs - 1) * (full > LEAST_CACHE)
        return rows * channels * (every + again) * (every > LEAST_CACHE)

    def table_bytes(self, form: Form) -> float:
        """Count pairs of 16 bits, beside what ends a channel's sums."""
        rows, columns = positions(form)
        pairs = rows * (odd_kernel(columns) // 2 + 1)
        return (4 * pairs + END_BYTES) * form.out.extents[2]

    def scratch_bytes(self, form: Form) -> int:
        """Count as many rows as the kernel has, of some channels, each channel by itself."""
        op, tensors = convolution(form), form.graph.tensors
        at_once = lanes(form.out.extents[2])
        return tensors[op.parameters[0]].shape[1] * at_once * columns(op, tensors) * 2


def lanes(channels: int) -> int:
    """Return how many of ``channels`` are taken from a word."""
    return LANES if channels >= LANES else 1


def columns(op: Conv2d, tensors: Tensors) -> int:
    """Elements in a row of one channel, padding included; pairs are read whole."""
    kernel = odd_kernel(tensors[op.parameters[0]].shape[2])
    width_in, width_out = tensors[op.inputs[0]].shape[1], tensors[op.output].shape[1]
    computed = 2 * width_out if op.stride[1] == 2 else width_out + width_out % 2
    needed = max(computed + kernel - 1, op.padding[2] + width_in)
    return needed + needed % 2


def odd_kernel(columns: int) -> int:
    """Return a kernel's columns with a column of zeros where that makes pairs and one more."""
    return max(3, columns | 1)


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
        f"depthwise convolutions, kernels of up to {WIDEST_ROW} columns, strides 1 and 2 along "
        "rows, that make one row from rows in blocks"
    )

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Conv2d) or found is None:
            return False
        source, target = found
        return (
            op.groups == source.channels == target.channels
            and max(op.padding[2:]) < positions(form)[1] <= WIDEST_ROW
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
        """Count pairs of 16 bits, beside what sums begin with, at either edge, too."""
        rows, columns = positions(form)
        return (4 * rows * max(2, columns - 2) + TABLE_BYTES) * self.known(form)[1].channels

    def access_order(self, form: Form) -> AccessOrder:
        """Channel by channel all units."""
        source, target = self.known(form)
        found = self.units(form)
        channel = len(found) * np.arange(source.channels)
        stages = ((channel + turn, unit.pixels, unit.outs) for turn, unit in enumerate(found))
        return AccessOrder.of(source, target, stages)
