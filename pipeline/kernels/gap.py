"""Where an output may begin above an input that dies, where a kernel goes pixel by pixel, in order
or from the last one, and reads the inputs of each before it writes that."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from pipeline.graph.access import Operand, Window
from pipeline.graph.tensor import IntArray
from pipeline.kernels.form import Form

NEVER = 1 << 60
"""Nibbles: more than any arena has."""


class Gap(NamedTuple):
    """Nibbles from the beginning of a dying input to that of the output that a kernel writes over
    it.

    Attributes:
        forwards: at most so many, where pixels are computed in order; may be fewer than none.
        backwards: at least so many, where they are computed from the last one.
        at: others that are possible in any order.
        delay: a pixel is written once the inputs of so many more have been read.
        aside_bytes: that the kernel keeps of its output meanwhile.
    """

    forwards: int
    backwards: int = NEVER
    at: tuple[int, ...] = ()
    delay: int = 0
    aside_bytes: int = 0

    def apart(self, over: int, under: int, backwards: bool = True) -> tuple[tuple[int, int], ...]:
        """The open intervals that an output of ``over`` nibbles may not begin in, above an input of
        ``under``; ``backwards``: it may be computed from the last pixel."""
        low = max(self.forwards, -over)
        high = min(self.backwards, under) if backwards else under
        ends = (low, *(at for at in self.at if low < at < high), high)
        return tuple((a, b) for a, b in pairwise(ends) if a < b)

    def shared(self, over: int, under: int) -> int:
        """The most nibbles that an output of ``over`` can have in common with an input of
        ``under``."""
        least, most = sorted((0, under - over))
        begins = (min(self.forwards, most), max(self.backwards, least), *self.at)
        return max(0, *(min(begin + over, under) - max(begin, 0) for begin in begins))


def pixel_gap(form: Form, tensor: str, delay: int = 0) -> Gap | None:
    """Where nothing is overwritten that is still to be read; None where the two can share nothing.

    Of a step that makes all, both lie row-major, side by side, and pixels are computed in order;
    of one that makes a row of an image it is said of that and any row of the input. Output pixel n
    ends no higher than the first element that one after the next ``delay`` reads; from the last
    one, it begins no lower than where one before the ``delay`` before it has read to.
    """
    op, tensors = form.op, form.graph.tensors
    operands = [operand for operand in op.reads(tensors) if operand.tensor == tensor]
    if form.partial or len(operands) != 1:
        return None
    read, out, ends = tensors[tensor].shape, form.target.shape, None
    if form.out.extents[0] == 1:
        window = operands[0].windows[1]
        by_rows = form.in_packed_rows(tensor) and form.whole_rows(op.output)
        if not by_rows or (window.axis, window.divide) != (1, 1):
            return None
        read, out = (1, *read[1:]), (1, *out[1:])
        first = _first(window, read[1], out).reshape(-1) * read[2]
        ends = _ends(window, read[1], out[1]) * read[2]
    elif form.covers(op.output) and form.in_one_piece(tensor) and form.in_one_piece(op.output):
        first = _first_read(operands[0], read, out)
    else:
        return None
    bits, made = form.parts[tensor].bits // 4, form.out.bits // 4
    pixel, over, under = (made * out[-1], made * prod(out), bits * prod(read))
    numbers, ahead = pixel * np.arange(len(first)), 1 + delay
    later = np.minimum.accumulate(first[::-1])[::-1][ahead:] * bits
    forwards = int((later - numbers[: len(later)] - pixel).min(initial=under))
    backwards = NEVER
    if ends is not None:
        earlier = np.maximum.accumulate(ends)[: max(0, len(ends) - ahead)] * bits
        backwards = int((earlier - numbers[ahead:]).max(initial=-over))
    gap = Gap(forwards, backwards, (), delay, ahead * pixel // 2)
    return gap if gap.shared(over, under) else None


def channel_gap(form: Form, tensor: str) -> Gap | None:
    """As ``pixel_gap``, where a kernel makes a row of an image channel by channel, each from the
    same channel of the input, which it reads wholly before it writes: pixels that begin together
    keep the channels apart."""
    if (
        form.partial
        or form.out.extents[0] != 1
        or not form.in_packed_rows(tensor)
        or not form.whole_rows(form.op.output)
        or not form.op.channel_wise(form.graph.tensors)
        or form.parts[tensor].bits != form.out.bits
    ):
        return None
    element, (_, columns, channels) = form.out.bits // 4, form.target.shape
    over = element * columns * channels
    under = element * form.graph.tensors[tensor].shape[1] * channels
    return Gap(-over, NEVER, tuple(sorted({0, under - over})), 0, columns * element // 2)


def _ends(window: Window, extent: int, outs: int) -> IntArray:
    """Along one axis, of each window the index after the last one inside; of one outside, 0."""
    start = np.arange(outs) * window.stride + window.offset
    reach = start + (window.count - 1) * window.dilation
    last = reach - -(-np.maximum(reach - (extent - 1), 0) // window.dilation) * window.dilation
    return np.where((last >= 0) & (last >= start), last + 1, 0)


def _first_read(operand: Operand, shape: tuple[int, ...], out: tuple[int, ...]) -> IntArray:
    """For each output pixel, row-major, the number of the first element that it reads."""
    total = np.zeros(out[:-1], dtype=np.int64)
    stride = 1
    for window, extent in reversed(list(zip(operand.windows, shape, strict=True))):
        total = total + stride * _first(window, extent, out)
        stride *= extent
    return total.reshape(-1)


def _first(window: Window, extent: int, out: tuple[int, ...]) -> IntArray:
    """Along one axis, the first index inside; of a window outside of all, its end."""
    rows = window.axis is not None and window.axis < len(out) - 1
    numbers = np.arange(out[window.axis] if rows and window.axis is not None else 1)
    start = numbers // window.divide * window.stride + window.offset
    missing = np.maximum(-start, 0)
    inside = start + -(-missing // window.dilation) * window.dilation
    inside = np.minimum(inside, extent)
    if not rows:
        return np.asarray(inside[:1], dtype=np.int64)
    sides = [-1 if axis == window.axis else 1 for axis in range(len(out) - 1)]
    return np.asarray(inside, dtype=np.int64).reshape(sides)
