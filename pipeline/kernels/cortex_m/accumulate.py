"""Convolution of some input channels into accumulators: a pass of a loop over channels."""

from __future__ import annotations

from math import prod

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.columns import kinds
from pipeline.kernels.cortex_m.conv2d import Rows, is_flat, pixels_of
from pipeline.kernels.cortex_m.fast import Fast, convolution
from pipeline.kernels.cortex_m.fast import pairs as pairs_of
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, positions

MOST_WINDOW = 9
"""Elements of a window that the registers hold, two in each."""

PIXELS = 32
"""Pixels that are widened together where each is a word."""


class Accumulate(Fast):
    """Accumulators that are narrow and rounded have code of their own where windows are small."""

    word = "accumulate"
    takes = "convolutions of one group that add equally many channels of an image in each pass"

    def can(self, form: Form) -> bool:
        op = form.op
        if not isinstance(op, Conv2d) or not form.partial or form.overlaps:
            return False
        name = op.inputs[0]
        return (
            op.groups == 1
            and form.target.shape[2] > 1
            and form.covers(op.output)
            and form.even(name, 2)
            and form.evenly_spaced(op.output)
            and form.evenly_spaced(name)
        )

    def counts(self, form: Form) -> Counts:
        rows, columns, channels = form.target.shape
        window = Rows.of(convolution(form), form.graph.tensors, form.given.extents[2])
        pixels = -(-rows * columns // pixels_of(form)) * pixels_of(form)
        pairs, size = -(-channels // 2), prod(positions(form)) * form.given.extents[2]
        if form.out.bits <= 16 and few_taps(size):
            pixels, narrow = rows * columns, form.out.bits == 8
            return {
                "pair of products in registers": pixels * channels * pairs_of(size),
                "four sums of 8 bits": pixels * -(-channels // 4) * narrow,
                "sum of 16 bits": pixels * channels * (not narrow),
                "element in registers": pixels * size,
            }
        return {
            "word of a pixel and a pair": pixels * pairs * window.words,
            "output": pixels * pairs * 2,
            "narrow output": pixels * pairs * 2 * (form.out.bits < 32),
            "word of a window": pixels * window.number * (window.elements // 4),
            "element of a window": pixels * window.number * (window.elements % 4),
            "tap": pixels * window.number,
        }

    def scratch_bytes(self, form: Form) -> int:
        """Windows of some pixels, or weights, 16 bits each, see ``few_taps``."""
        op, tensors = convolution(form), form.graph.tensors
        channels, (count, *shape) = form.given.extents[2], tensors[op.parameters[0]].shape
        size = prod(shape[:2]) * channels
        windows = pixels_of(form) * Rows.of(op, tensors, channels).words * 8
        if form.out.bits > 16 or not few_taps(size):
            return windows
        if pairs_of_pixels(form):
            windows = max(windows, (PIXELS + count) * 4)
        each = (pairs_of(shape[0] * len(kind.taps) * channels) for kind in kinds(op, tensors))
        return max(windows, sum(each) * count * 4)


def pairs_of_pixels(form: Form) -> bool:
    """Check whether each pixel is one word of at most two channels, which stays where it is: four
    pixels and four output channels at a time."""
    rows, columns, count = form.target.shape
    flat = is_flat(convolution(form), form.graph.tensors)
    even = rows * columns % 4 == 0 == count % 4
    return flat and even and form.given.extents[2] <= 2


def few_taps(elements: int) -> bool:
    """Check whether a window's ``elements`` stay in registers for all output channels."""
    return elements <= MOST_WINDOW
