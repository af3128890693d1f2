"""What a layout decides: where every tensor of a chain lives, and the steps that fill them."""

from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray, Tensor
from pipeline.plan.vocabulary import Affine, Buffer, Table, packed
from pipeline.schedules.traversed import Run, Turn


@dataclass(frozen=True)
class Arrangement:
    """
    Attributes:
        nibbles: the arena: no buffer of the chain reaches beyond it.
        buffers: the first one holds the chain's first tensor, row-major in one piece.
        beside: an address, a multiple of 8 nibbles, from which the first tensor leaves as many
            nibbles free as were asked for.
        runs: compute the chain from its first tensor; the last makes its last tensor.
    """

    nibbles: int
    buffers: tuple[Buffer, ...]
    beside: int
    runs: tuple[Run | Turn, ...]


def at(tensor: Tensor, base: int) -> Buffer:
    """``tensor``, row-major in one piece from nibble ``base``; the schedule names the memory."""
    bits = tensor.dtype.bits
    address = packed(tensor.shape, bits, base)
    return Buffer(tensor.name, tensor.name, "", tensor.shape, bits, address)


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
