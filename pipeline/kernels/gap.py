"""How far an output may begin after an input that dies, where a kernel goes pixel by pixel."""

from __future__ import annotations

import numpy as np

from pipeline.graph.access import Operand, Window
from pipeline.graph.tensor import IntArray
from pipeline.kernels.form import Form


def pixel_gap(form: Form, tensor: str) -> int | None:
    """Nibbles from the input's beginning to the latest beginning of the output at which nothing is
    overwritten that is still to be read; None where the two can share nothing.

    Both lie whole, row-major and side by side. Pixels are computed in that order, and the inputs of
    each are read before it is written: output pixel n ends no higher than the first element that a
    later one reads.
    """
    op, tensors = form.op, form.graph.tensors
    operands = [operand for operand in op.reads(tensors) if operand.tensor == tensor]
    if form.partial or len(operands) != 1 or not form.covers(op.output):
        return None
    if not (form.in_one_piece(tensor) and form.in_one_piece(op.output)):
        return None
    first = _first_read(operands[0], tensors[tensor].shape, form.target.shape)
    later = np.minimum.accumulate(first[::-1])[::-1][1:]
    pixel = form.target.shape[-1] * form.out.bits // 4
    ends = pixel * np.arange(1, len(first))
    gap = int((later * form.parts[tensor].bits // 4 - ends).min(initial=_size(form, tensor)))
    return gap if gap > -_size(form, op.output) else None


def _first_read(operand: Operand, shape: tuple[int, ...], out: tuple[int, ...]) -> IntArray:
    """For each output pixel, row-major, the number of the first element that it reads."""
    total = np.zeros(out[:-1], dtype=np.int64)
    stride = 1
    for window, extent in reversed(list(zip(operand.windows, shape, strict=True))):
        total = total + stride * _first(window, extent, out)
        stride *= extent
    return total.reshape(-1)


def _first(window: Window, extent: int, out: tuple[int, ...]) -> IntArray | int:
    """Along one axis, the first index inside; of a window outside of all, its end."""
    rows = window.axis is not None and window.axis < len(out) - 1
    numbers = np.arange(out[window.axis] if rows and window.axis is not None else 1)
    start = numbers // window.divide * window.stride + window.offset
    missing = np.maximum(-start, 0)
    inside = start + -(-missing // window.dilation) * window.dilation
    inside = np.minimum(inside, extent)
    if not rows:
        return int(inside[0])
    sides = [-1 if axis == window.axis else 1 for axis in range(len(out) - 1)]
    return np.asarray(inside, dtype=np.int64).reshape(sides)


def _size(form: Form, tensor: str) -> int:
    """Nibbles."""
    return form.graph.tensors[tensor].size * form.parts[tensor].bits // 4
