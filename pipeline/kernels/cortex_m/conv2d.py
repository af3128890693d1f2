"""Convolution of an image's rows: windows of some pixels are widened once, for all channels. And
what has that in common with others."""

from math import prod

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.fast import convolution, in_passes, in_place, rounds
from pipeline.kernels.fast import pairs as pairs_of
from pipeline.kernels.form import Form
from pipeline.kernels.quick import endings
from pipeline.kernels.taps import inside
from pipeline.kernels.widened import Widened, cheapest, evenly_spaced, is_flat, row_by_row
from pipeline.kernels.work import Counts, positions

MOST_PIXELS = 4
"""Most pixels that are computed together: their sums fill the registers."""

MOST_WORDS = 4
"""Most words of a window in the code of the innermost loop: with what follows it, a kilobyte of
instruction cache holds no more."""


class InPairs(Fitted, Widened):
    """Two channels at a time."""

    def together(self, form: Form) -> int:
        """Return how many pixels of the step are computed together."""
        return pixels_together(evenly_spaced(form))

    def counts(self, form: Form) -> Counts:
        """A word is four elements of a window."""
        op, window, blocks = convolution(form), self.window(form), self.blocks(form)
        pairs, pixels = pairs_of(form.out.extents[2]), sum(n * number for n, number in blocks)
        passes, outputs = pairs * self.table_passes(form), 2 * pixels * pairs
        across = inside(op, form.graph.tensors, 1)
        at_edges = sum(len(taps) < len(window.columns) for taps in across) * (not window.by_tap)
        counts = {
            "word of a pixel and a pair": pixels * pairs * window.words,
            "output": outputs,
            "word of a window": pixels * window.number * (window.elements // 4),
            "element left over": pixels * window.number * (window.elements % 4),
        }
        if form.partial:  # measured sums tell no more apart
            return {**counts, "narrow output": outputs * (form.out.bits < 32)}
        return {
            **counts,
            "call": 1,
            "word of a pair of channels": passes * window.words,
            "the same, 3 or 4 pixels": sum(m for n, m in blocks if n > 2) * pairs * window.words,
            "round": passes * rounds(window.words, MOST_WORDS),
            "tap over an edge": form.out.extents[0] * at_edges * prod(positions(form)),
            **endings(op, form.graph, outputs),
        }

    def scratch_bytes(self, form: Form) -> int:
        """Return the windows of some pixels, 16 bits an element."""
        return self.together(form) * self.window(form).words * 8


class Convolution(InPairs):
    """Where passes of a loop make some channels, all of them have to end quickly."""

    word = "conv2d"
    takes = "convolutions of one group, two or more channels at a time, rows in one piece"

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Conv2d)
            and op.groups == 1
            and in_passes(form, 2)
            and form.in_packed_rows(op.inputs[0])
            and self.window(form).size > 0
            and (not form.overlaps or self.takes_place(form))
        )

    def takes_place(self, form: Form) -> bool:
        """Check whether each pixel lies where the one does that it alone is made of: windows are
        read before pixels are written, and none is made twice."""
        flat = is_flat(convolution(form), form.graph.tensors)
        return flat and form.covers(form.op.output) and in_place(form)

    def each_row(self, form: Form) -> bool:
        return row_by_row(form)

    def counts(self, form: Form) -> Counts:
        """Charge rows of windows whose length is known to C for an odd element alone."""
        found, window = dict(super().counts(form)), self.window(form)
        if window.by_tap or found["tap over an edge"]:
            return found
        rows = found.pop("element left over") // max(1, window.elements % 4)
        return {**found, "odd element of a row": rows * (window.elements % 2)}


def pixels_together(pixels: int) -> int:
    return cheapest(pixels, MOST_PIXELS, instructions)


def instructions(pixels: int) -> int:
    """Count those for two channels and two taps of so many pixels."""
    return 3 + 3 * pixels
