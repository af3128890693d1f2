"""How far an output may begin after an input that dies, where a kernel goes pixel by pixel, in
order, and reads the inputs of each before it writes that."""

from __future__ import annotations

from math import prod

import numpy as np

from pipeline.graph.access import Operand, Window
from pipeline.graph.tensor import IntArray
from pipeline.kernels.form import Form


def pixel_gap(form: Form, tensor: str) -> int | None:
    """Nibbles from the input's beginning to the latest beginning of the output at which nothing is
    overwritten that is still to be read; None where the two can share nothing.

    Of a step that makes all, both lie row-major, side by side; of one that makes a row of an image
    it is said of that and any row of the input. Output pixel n ends no higher than the first
    element that a later one reads.
    """
    op, tensors = form.op, form.graph.tensors
    operands = [operand for operand in op.reads(tensors) if operand.tensor == tensor]
    if form.partial or len(operands) != 1:
        return None
    read, out = tensors[tensor].shape, form.target.shape
    if form.out.extents[0] == 1:
        window = operands[0].windows[1]
        by_rows = form.in_packed_rows(tensor) and form.whole_rows(op.output)
        if not by_rows or (window.axis, window.divide) != (1, 1):
            return None
        read, out = (1, *read[1:]), (1, *out[1:])
        first = _first(window, read[1], out).reshape(-1) * read[2]
    elif form.covers(op.output) and form.in_one_piece(tensor) and form.in_one_piece(op.output):
        first = _first_read(operands[0], read, out)
    else:
        return None
    pixel, size = (n * form.out.bits // 4 for n in (out[-1], prod(out)))
    later = np.minimum.accumulate(first[::-1])[::-1][1:] * form.parts[tensor].bits // 4
    ends = pixel * np.arange(1, len(first))
    gap = int((later - ends).min(initial=prod(read) * form.parts[tensor].bits // 4))
    return gap if gap > -size else None


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
