"""Elements of a buffer, looked up in arrays that say something about every cell of a memory.

A cell is ``grain`` nibbles: one, or two where nothing in the memory is smaller than a byte. Where
the elements are evenly spaced they are a strided view of such an array, which costs no addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.vocabulary import Affine, Buffer

Axis = range | IntArray
"""Indices along one axis, ascending."""


@dataclass(frozen=True)
class Patch:
    """The elements of ``buffer`` at the grid of indices ``axes``, of one frame."""

    buffer: Buffer
    axes: tuple[Axis, ...]
    frame: int = 0

    @classmethod
    def of(cls, buffer: Buffer, box: Box, frame: int = 0) -> Patch:
        return cls(buffer, tuple(range(start, stop) for start, stop in box), frame)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @cached_property
    def numbers(self) -> IntArray:
        """Row-major numbers of the elements in their tensor; shape ``shape``."""
        shape = self.buffer.shape
        strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
        return _outer(self.axes, strides, 0, np.int32 if prod(shape) < 1 << 31 else np.int64)

    @cached_property
    def addresses(self) -> IntArray:
        """The first nibble of each element; shape ``shape``."""
        address = self.buffer.map
        if not isinstance(address, Affine):
            table = self.buffer.addresses(self.buffer.box)
            return np.asarray(table[np.ix_(*(np.asarray(a, dtype=np.int64) for a in self.axes))])
        rings = zip(self.axes, self.buffer.wrap, strict=True)
        wrapped = [np.asarray(axis) % ring if ring else axis for axis, ring in rings]
        return _outer(wrapped, address.strides, address.base, np.int64)

    @property
    def cells(self) -> IntArray:
        """Every nibble: shape (elements, nibbles of an element)."""
        return self.addresses.reshape(-1, 1) + np.arange(self.buffer.nibbles)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """No element lies below the first or at or above the second nibble."""
        if self.even is None:
            return self.buffer.extent
        base, strides = self.even
        reaches = [n * (len(axis) - 1) for n, axis in zip(strides, self.axes, strict=True)]
        low = base + sum(min(0, reach) for reach in reaches)
        return low, base + sum(max(0, reach) for reach in reaches) + self.buffer.nibbles

    def meets(self, other: Patch) -> bool:
        """Whether the extents overlap; the cells in between may still be different ones."""
        (low, high), (start, stop) = self.extent, other.extent
        return self.buffer.memory == other.buffer.memory and low < stop and start < high

    @cached_property
    def even(self) -> tuple[int, tuple[int, ...]] | None:
        """The nibble of the first element and the stride of every axis, if all are even."""
        if not isinstance(self.buffer.map, Affine) or not all(map(len, self.axes)):
            return None
        base, strides = self.buffer.map.base, list[int]()
        parts = zip(self.axes, self.buffer.map.strides, self.buffer.wrap, strict=True)
        for axis, stride, ring in parts:
            if not isinstance(axis, range):
                return None
            first = axis.start % ring if ring else axis.start
            if ring and first + axis.step * (len(axis) - 1) >= ring:
                return None
            base += stride * first
            strides.append(stride * axis.step)
        return base, tuple(strides)

    @cached_property
    def apart(self) -> bool:
        """No two elements share a cell. False where that is not plain to see."""
        if self.even is None:
            return False
        room = self.buffer.nibbles
        for stride, count in sorted(zip(map(abs, self.even[1]), self.shape, strict=True)):
            if count > 1 and stride < room:
                return False
            room = max(room, stride * (count - 1) + room)
        return True

    def take(self, array: npt.NDArray[Any], grain: int, origin: int = 0) -> npt.NDArray[Any]:
        """What ``array`` says about every cell: shape (*shape, cells of an element).

        ``array`` begins at nibble ``origin``.
        """
        if self.even is None:
            return np.asarray(array[self._places(grain, origin)])
        return self._view(array, grain, origin)

    def put(
        self, array: npt.NDArray[Any], grain: int, values: npt.ArrayLike, origin: int = 0
    ) -> None:
        """Set every cell; ``values`` broadcast to (*shape, cells of an element)."""
        if self.even is None:
            array[self._places(grain, origin)] = values
        else:
            self._view(array, grain, origin)[...] = values

    def _places(self, grain: int, origin: int) -> IntArray:
        parts = np.arange(max(1, self.buffer.nibbles // grain))
        return np.asarray((self.addresses[..., None] - origin) // grain + parts)

    def _view(self, array: npt.NDArray[Any], grain: int, origin: int) -> npt.NDArray[Any]:
        """As a view, which numpy refuses to make beyond the ends of ``array``."""
        assert self.even is not None
        base, strides = self.even
        item = array.itemsize
        return np.ndarray(
            (*self.shape, max(1, self.buffer.nibbles // grain)),
            array.dtype,
            array.data,
            (base - origin) // grain * item,
            (*(stride // grain * item for stride in strides), item),
        )


def progression(index: IntArray) -> Axis:
    """``index`` (ascending) as a range if it is evenly spaced."""
    if len(index) < 2:
        return range(int(index[0]), int(index[0]) + 1) if len(index) else range(0)
    step = int(index[1] - index[0])
    if len(index) * step != int(index[-1]) - int(index[0]) + step or (np.diff(index) != step).any():
        return index
    return range(int(index[0]), int(index[-1]) + 1, step)


def _outer(axes: Any, strides: Any, base: int, kind: Any) -> IntArray:
    """``base + Σ strides[d] * axes[d]`` for every place of the grid."""
    total = np.full((1,) * len(axes), base, dtype=kind)
    for d, (axis, stride) in enumerate(zip(axes, strides, strict=True)):
        line = np.asarray(axis, dtype=kind) * kind(stride)
        total = total + line.reshape([-1 if e == d else 1 for e in range(len(axes))])
    return np.asarray(np.broadcast_to(total, [len(axis) for axis in axes]))
