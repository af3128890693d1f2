"""Convolution of some input channels into accumulators: a pass of a loop over channels."""

from math import prod

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.conv2d import InPairs
from pipeline.kernels.fast import convolution
from pipeline.kernels.fast import pairs as pairs_of
from pipeline.kernels.form import Form
from pipeline.kernels.taps import kinds
from pipeline.kernels.widened import is_flat
from pipeline.kernels.work import Counts, positions

MOST_WINDOW = 9
"""Elements of a window that the registers hold, two in each."""

PIXELS = 32
"""Pixels that are widened together where each is a word."""


class Accumulate(InPairs):
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
        (rows, columns, channels), size = form.target.shape, self.taps(form)
        if not self.in_registers(form):
            return super().counts(form)
        pixels, narrow = rows * columns, form.out.bits == 8
        return {
            "pair of products in registers": pixels * channels * pairs_of(size),
            "four sums of 8 bits": pixels * -(-channels // 4) * narrow,
            "sum of 16 bits": pixels * channels * (not narrow),
            "element in registers": pixels * size,
        }

    def in_registers(self, form: Form) -> bool:
        """Check whether a window stays in registers for all output channels, of narrow sums."""
        return form.out.bits <= 16 and self.taps(form) <= MOST_WINDOW

    def taps(self, form: Form) -> int:
        """Count the elements of a window, outside or not."""
        return prod(positions(form)) * form.given.extents[2]

    def scratch_bytes(self, form: Form) -> int:
        """Windows of some pixels, or weights, 16 bits each, see ``in_registers``."""
        windows, count = super().scratch_bytes(form), form.target.shape[2]
        if not self.in_registers(form):
            return windows
        if pairs_of_pixels(form):
            windows = max(windows, (PIXELS + count) * 4)
        column = self.taps(form) // positions(form)[1]
        every = kinds(convolution(form), form.graph.tensors)
        return max(windows, sum(pairs_of(column * len(kind.taps)) for kind in every) * count * 4)


def pairs_of_pixels(form: Form) -> bool:
    """Check whether each pixel is one word of at most two channels, which stays where it is: four
    pixels and four output channels at a time."""
    rows, columns, count = form.target.shape
    flat = is_flat(convolution(form), form.graph.tensors)
    even = rows * columns % 4 == 0 == count % 4
    return flat and even and form.given.extents[2] <= 2
