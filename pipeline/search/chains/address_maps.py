"""Address maps from the addresses of pixels."""

from __future__ import annotations

import numpy as np

from pipeline.graph.tensor import IntArray, Tensor
from pipeline.plan.vocabulary import Affine, Buffer, Table, packed


def at(tensor: Tensor, base: int, name: str = "") -> Buffer:
    """``tensor``, row-major in one piece from nibble ``base``; the schedule names the memory."""
    bits = tensor.dtype.bits
    address = packed(tensor.shape, bits, base)
    return Buffer(name or tensor.name, tensor.name, "", tensor.shape, bits, address)


def buffer(tensor: Tensor, elements: IntArray, name: str = "") -> Buffer:
    """``tensor``, its elements at the given nibbles (tensor's shape).

    The map is affine if one fits, else a table.
    """
    address = _affine(elements) or Table.of(elements)
    return Buffer(name or tensor.name, tensor.name, "", tensor.shape, tensor.dtype.bits, address)


def _affine(elements: IntArray) -> Affine | None:
    base = int(elements.flat[0])
    strides, line = [], np.asarray(base)
    for axis, extent in enumerate(elements.shape):
        ahead = elements[tuple(int(d == axis and extent > 1) for d in range(elements.ndim))]
        strides.append(int(ahead) - base)
        line = line[..., None] + strides[-1] * np.arange(extent)
    return Affine(base, tuple(strides)) if np.array_equal(line, elements) else None
