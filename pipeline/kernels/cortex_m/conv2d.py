"""Convolution of an image's rows: windows of some pixels are widened once, for all channels."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.columns import kinds
from pipeline.kernels.cortex_m.fast import Fast, convolution, in_groups_of, in_rows, words
from pipeline.kernels.cortex_m.quick import quick_end
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, positions

MOST_PIXELS = 4
"""That are computed together: their sums fill the registers."""


class Convolution(Fast):
    """Two channels at a time; where passes of a loop make some, all of them have to end quickly."""

    word = "conv2d"
    takes = "convolutions of one group, two or more channels at a time, rows in one piece"
    costs: ClassVar[Counts] = {
        "word of a pair of channels": 0.276,
        "word of a pixel and a pair": 8.79,
        "pair of channels": 108.0,
        "word of a window": 4.29,
        "element of a row over an edge": 11.8,
        "element left over": 61.9,
    }

    def can(self, form: Form) -> bool:
        op, tensors = form.op, form.graph.tensors
        if not isinstance(op, Conv2d) or op.groups > 1 or not in_rows(form):
            return False
        channels, at_once = form.target.shape[2], form.out.extents[2]
        return (
            in_groups_of(2, channels, at_once)
            and form.in_packed_rows(op.inputs[0])
            and bool(reached(op, tensors))
            and (at_once == channels or quick_end(op, form.graph) is not None)
        )

    def counts(self, form: Form) -> Counts:
        """A word is four elements of a window."""
        rows, columns, _ = form.out.extents
        shape = form.graph.tensors[convolution(form).parameters[0]].shape
        together = pixels_of(form)
        blocks, pairs = -(-rows * columns // together), -(-form.out.extents[2] // 2)
        window = words(prod(shape[1:]))
        found = kinds(convolution(form), form.graph.tensors)
        over_edges = sum(k.stop - k.first for k in found if len(k.taps) < shape[2])
        return {
            "word of a pair of channels": blocks * pairs * window,
            "word of a pixel and a pair": blocks * pairs * window * together,
            "pair of channels": blocks * pairs,
            "word of a window": blocks * together * window,
            "element of a row over an edge": rows * over_edges * prod(shape[1:]),
            "element left over": blocks * together * shape[1] * (shape[2] * shape[3] % 4),
        }

    def weight_passes(self, form: Form) -> int:
        rows, columns, _ = form.out.extents
        return -(-rows * columns // pixels_of(form))

    def each_row(self, form: Form) -> bool:
        """Where pixels that are computed together would not be evenly spaced."""
        op = convolution(form)
        flat = (*positions(form), *op.stride, *op.padding) == (1, 1, 1, 1, 0, 0, 0, 0)
        return not form.follow(op.output) or (flat and not form.follow(op.inputs[0]))

    def scratch_bytes(self, form: Form) -> int:
        """The windows of some pixels, 16 bits an element."""
        taps = prod(form.graph.tensors[convolution(form).parameters[0]].shape[1:])
        return pixels_of(form) * words(taps) * 8


def pixels_of(form: Form) -> int:
    """How many pixels of the step are computed together: of one row, where rows do not follow each
    other, or may be fewer at an edge."""
    rows, columns, _ = form.out.extents
    name = form.op.output
    together = form.even(name, 0) and form.follow(name) and form.follow(form.op.inputs[0])
    return pixels_together(rows * columns if together else columns)


def pixels_together(pixels: int) -> int:
    """How many of ``pixels`` to compute together: each block of p costs 3 + 3p instructions for
    two channels and two taps, and the last block is as large as the others."""
    costs = {p: -(-pixels // p) * (3 + 3 * p) for p in range(1, min(MOST_PIXELS, pixels) + 1)}
    return min(costs, key=lambda p: (costs[p], -p))


def reached(op: Conv2d, tensors: Tensors) -> list[tuple[int, int]]:
    """Taps (ky, kx) that lie inside of the input for some pixel."""
    axes = [
        [
            k
            for k in range(tensors[op.parameters[0]].shape[1 + axis])
            if any(
                0 <= n * op.stride[axis] - op.padding[2 * axis] + k * op.dilation[axis] < extent
                for n in range(tensors[op.output].shape[axis])
            )
        ]
        for axis, extent in enumerate(tensors[op.inputs[0]].shape[:2])
    ]
    return [(ky, kx) for ky in axes[0] for kx in axes[1]]
