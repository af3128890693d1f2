"""Convolution of an image's rows: windows of some pixels are widened once, for all channels. And
what has that in common with others."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.columns import inside, reached_along
from pipeline.kernels.cortex_m.fast import Fast, convolution, in_groups_of, in_place, in_rows
from pipeline.kernels.cortex_m.fast import pairs as pairs_of
from pipeline.kernels.cortex_m.inner import rounds
from pipeline.kernels.cortex_m.quick import endings, quick_end
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, positions

MOST_PIXELS = 4
"""Most pixels that are computed together: their sums fill the registers."""

MOST_WORDS = 4
"""Most words of a window in the code of the innermost loop: with what follows it, a kilobyte of
instruction cache holds no more."""


class Rows(NamedTuple):
    """Rows and columns of a kernel, see ``reached_along``, which windows are gathered from in
    pieces: a row of the kernel, or a tap."""

    rows: range
    columns: range
    channels: int
    by_tap: bool

    @classmethod
    def of(cls, op: Conv2d, tensors: Tensors, channels: int = 0) -> Rows:
        """``channels``: of a pass, if not all."""
        rows, columns = (reached_along(op, tensors, axis) for axis in (0, 1))
        depth = tensors[op.inputs[0]].shape[2]
        apart = op.dilation[1] > 1 or 0 < channels < depth
        return cls(rows, columns, channels or depth, by_tap=apart and len(columns) > 1)

    @property
    def number(self) -> int:
        """Count the pieces."""
        return len(self.rows) * (len(self.columns) if self.by_tap else 1)

    @property
    def elements(self) -> int:
        """Count those of a piece."""
        return self.channels * (1 if self.by_tap else len(self.columns))

    @property
    def size(self) -> int:
        """Count the elements of a window."""
        return self.number * self.elements

    @property
    def words(self) -> int:
        """Count words of four elements: whole ones of each piece, then what is left of all."""
        return self.number * (self.elements // 4) + -(-self.number * (self.elements % 4) // 4)


class Widened(Fast):
    """Convolution by windows of some pixels, which are widened once for all channels, two of them
    at a time."""

    def window(self, form: Form) -> Rows:
        """Return what windows are gathered from: of sums, of the channels that a pass adds."""
        channels = form.given.extents[2] if form.partial else 0
        return Rows.of(convolution(form), form.graph.tensors, channels)

    def together(self, form: Form) -> int:
        """Return how many pixels of the step are computed together."""
        return pixels_together(evenly_spaced(form))

    def tail(self, form: Form) -> int:
        """Pixels of the last block: what is left where none may be made twice, else as many as of
        the others."""
        together = self.together(form)
        left = prod(form.out.extents[:2]) % together if form.partial or form.overlaps else 0
        return left or together

    def blocks(self, form: Form) -> tuple[tuple[int, int], ...]:
        """Return how many pixels are computed together, and how often."""
        together = self.together(form)
        number = -(-prod(form.out.extents[:2]) // together)
        return (together, number - 1), (self.tail(form), 1)

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

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        return sum(number for _, number in self.blocks(form))

    def scratch_bytes(self, form: Form) -> int:
        """The windows of some pixels, 16 bits an element."""
        return self.together(form) * self.window(form).words * 8


class Convolution(Widened):
    """Where passes of a loop make some channels, all of them have to end quickly."""

    word = "conv2d"
    takes = "convolutions of one group, two or more channels at a time, rows in one piece"

    def can(self, form: Form) -> bool:
        op = form.op
        if not isinstance(op, Conv2d) or op.groups > 1 or not in_rows(form):
            return False
        channels, at_once = form.target.shape[2], form.out.extents[2]
        return (
            in_groups_of(2, channels, at_once)
            and form.in_packed_rows(op.inputs[0])
            and self.window(form).size > 0
            and (at_once == channels or quick_end(op, form.graph) is not None)
            and (not form.overlaps or self.takes_place(form))
        )

    def takes_place(self, form: Form) -> bool:
        """Check whether each pixel lies where the one does that it alone is made of: windows are
        read before pixels are written, and none is made twice."""
        flat = is_flat(convolution(form), form.graph.tensors)
        return flat and form.covers(form.op.output) and in_place(form)

    def each_row(self, form: Form) -> bool:
        return row_by_row(form)


def is_flat(op: Conv2d, tensors: Tensors) -> bool:
    """Check whether a window is a pixel, that of the same number."""
    kernel = tensors[op.parameters[0]].shape[1:3]
    return (*kernel, *op.stride, *op.padding) == (1, 1, 1, 1, 0, 0, 0, 0)


def row_by_row(form: Form) -> bool:
    """Check whether pixels that are computed together would not be evenly spaced otherwise."""
    op = convolution(form)
    flat = is_flat(op, form.graph.tensors)
    return not form.follow(op.output) or (flat and not form.follow(op.inputs[0]))


def evenly_spaced(form: Form) -> int:
    """Pixels of the step: of one row, where rows do not follow each other, or may be fewer at an
    edge."""
    rows, columns, _ = form.out.extents
    name = form.op.output
    together = form.even(name, 0) and form.follow(name) and form.follow(form.op.inputs[0])
    return rows * columns if together else columns


def pixels_together(pixels: int) -> int:
    return cheapest(pixels, MOST_PIXELS, instructions)


def cheapest(pixels: int, most: int, instructions: Callable[[int], float]) -> int:
    """Choose how many of ``pixels``, at ``most``, to compute together, where the last block is as
    large as the others."""
    costs = {p: -(-pixels // p) * instructions(p) for p in range(1, min(most, pixels) + 1)}
    return min(costs, key=lambda p: (costs[p], -p))


def instructions(pixels: int) -> int:
    """For two channels and two taps of so many pixels."""
    return 3 + 3 * pixels
