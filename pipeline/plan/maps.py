"""Maps from a tensor's indices to a memory's nibbles: by strides, by rows (in blocks of pixels or
not), or by a table.

Each answers for a tensor of ``shape`` whose elements take ``nibbles`` each; extents end exclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod
from typing import ClassVar

import numpy as np

from pipeline.errors import PlanError
from pipeline.graph.tensor import Box, IntArray
from pipeline.typed import misfit

Shape = tuple[int, ...]
Grid = Sequence[IntArray]
"""Indices along each axis: their combinations are meant."""


@dataclass(frozen=True)
class Affine:
    """Element (i, j, …) lives at ``base + Σ strides[d] * (i_d mod wrap[d])`` nibbles.

    ``wrap[d] = 0`` means no modulus; a wrap makes a ring of rows, or ping-pong with wrap 2.
    An empty ``wrap`` is all zeros.

    Attributes:
        held: from where to where along each axis indices have a place; empty: all of them, as along
            an axis with a modulus. Others have none, so ``base`` may be below the memory.
    """

    base: int
    strides: tuple[int, ...]
    wrap: tuple[int, ...] = ()
    held: Box = ()

    def fits(self, shape: Shape) -> bool:
        wrap = self.rings
        if not len(self.strides) == len(wrap) == len(shape) or min(wrap) < 0:
            return False
        return not self.held or (
            len(self.held) == len(shape)
            and all(
                (low, high) == (0, extent) if ring else 0 <= low < high <= extent
                for (low, high), extent, ring in zip(self.held, shape, wrap, strict=True)
            )
        )

    @property
    def rings(self) -> tuple[int, ...]:
        """The modulus of each axis, 0 for none."""
        return self.wrap or (0,) * len(self.strides)

    def extent(self, shape: Shape, nibbles: int) -> tuple[int, int]:
        low = high = self.base
        every = self.held or tuple((0, extent) for extent in shape)
        for (first, stop), stride, ring in zip(every, self.strides, self.rings, strict=True):
            ends = stride * first, stride * (min(stop, ring or stop) - 1)
            low, high = low + min(ends), high + max(ends)
        return low, high + nibbles

    def starts_on_bytes(self, shape: Shape) -> bool:
        moving = zip(shape, self.strides, self.rings, strict=True)
        odd = any(stride % 2 and min(extent, ring or extent) > 1 for extent, stride, ring in moving)
        return self.base % 2 == 0 and not odd

    def moved(self, by: int) -> Affine:
        return replace(self, base=self.base + by)

    def run(self, box: Box, nibbles: int) -> int | None:
        """The first nibble of ``box`` if its elements lie row-major side by side, else None."""
        if any(self.wrap):
            return None
        base, expected = self.base, nibbles
        for (start, stop), stride in zip(reversed(box), reversed(self.strides), strict=True):
            if stop - start > 1 and stride != expected:
                return None
            base, expected = base + start * stride, expected * (stop - start)
        return base

    def addresses(self, grid: Grid, shape: Shape) -> IntArray:
        axes = zip(grid, self.strides, self.rings, strict=True)
        lines = [stride * (index % ring if ring else index) for index, stride, ring in axes]
        return outer_sum(self.base, lines)


@dataclass(frozen=True)
class Rows:
    """Element (i, j, …) lives at ``cells[i] + Σ strides[d] * (j, …)_d``: each index of the first
    axis, a row of an image, lies anywhere."""

    cells: tuple[int, ...]
    strides: tuple[int, ...]

    def fits(self, shape: Shape) -> bool:
        return (len(self.cells), 1 + len(self.strides)) == (shape[0], len(shape))

    def row(self, index: int) -> Affine:
        """Row ``index`` of the tensor, counted from 0, as a tensor of one row."""
        return Affine(self.cells[index], (0, *self.strides))

    def extent(self, shape: Shape, nibbles: int) -> tuple[int, int]:
        low, high = self._inner.extent(shape[1:], nibbles)
        return min(self.cells) + low, max(self.cells) + high

    def starts_on_bytes(self, shape: Shape) -> bool:
        inner = self._inner.starts_on_bytes(shape[1:])
        return inner and not any(cell % 2 for cell in self.cells)

    def moved(self, by: int) -> Rows:
        return replace(self, cells=tuple(cell + by for cell in self.cells))

    def run(self, box: Box, nibbles: int) -> int | None:
        first, stop = box[0]
        if stop - first < 1:
            return None
        line = self._inner.run(box[1:], nibbles)
        each = nibbles * prod(stop - start for start, stop in box[1:])
        held = self.cells[first:stop]
        if line is None or any(b - a != each for a, b in pairwise(held)):
            return None
        return held[0] + line

    def addresses(self, grid: Grid, shape: Shape) -> IntArray:
        first = np.array(self.cells, dtype=np.int64)[grid[0]]
        rest = zip(grid[1:], self.strides, strict=True)
        return outer_sum(0, [first, *(stride * index for index, stride in rest)])

    @property
    def _inner(self) -> Affine:
        return Affine(0, self.strides)


@dataclass(frozen=True)
class Blocks:
    """Rows of an image, (rows, columns, channels), each anywhere, from ``cells[row]`` on: in blocks
    of ``pixels`` columns, channel by channel, ``[columns / pixels][channels][pixels]``.

    A word is then four neighbours of one channel. The last block may have fewer columns; with as
    many pixels as there are columns each channel of a row lies in one piece.

    Attributes:
        width: nibbles of an element.
    """

    cells: tuple[int, ...]
    pixels: int
    width: int

    def fits(self, shape: Shape) -> bool:
        sizes = min(self.pixels, self.width) > 0
        return sizes and len(shape) == 3 and len(self.cells) == shape[0]

    def extent(self, shape: Shape, nibbles: int) -> tuple[int, int]:
        last = self.width * (shape[1] * shape[2] - 1)
        return min(self.cells), max(self.cells) + last + nibbles

    def starts_on_bytes(self, shape: Shape) -> bool:
        return not (self.width % 2 or any(cell % 2 for cell in self.cells))

    def moved(self, by: int) -> Blocks:
        return replace(self, cells=tuple(cell + by for cell in self.cells))

    def run(self, box: Box, nibbles: int) -> int | None:
        """Not looked for."""
        return None

    def stretches(self, columns: int) -> list[tuple[int, int]]:
        """Return the first column of each block, and how many it has."""
        firsts = range(0, columns, self.pixels)
        return [(first, min(self.pixels, columns - first)) for first in firsts]

    def addresses(self, grid: Grid, shape: Shape) -> IntArray:
        _, columns, channels = shape
        rows = np.array(self.cells, dtype=np.int64)[grid[0]]
        within = grid[1] % self.pixels
        first = grid[1] - within
        apart = np.minimum(self.pixels, columns - first)  # from a channel to the next
        pixels = (first * channels + within)[:, None] + np.multiply.outer(apart, grid[2])
        return np.asarray(rows[:, None, None] + self.width * pixels)


@dataclass(frozen=True)
class Table:
    """Element number ``n`` (row-major) lives at nibble ``cells[n]``. There may be a million."""

    cells: tuple[int, ...]
    checks_itself: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if problem := misfit(self):
            raise PlanError(f"damaged plan: {problem}")

    @classmethod
    def of(cls, cells: IntArray) -> Table:
        """Make a table of addresses that a search found: integers, not checked one by one."""
        found = object.__new__(cls)
        every = cells.reshape(-1).astype(np.int64)
        every.flags.writeable = False
        found.__dict__["_array"] = every
        return found

    def __getattr__(self, name: str) -> tuple[int, ...]:
        """Make ``cells`` of what ``of`` made, which take five times as much, when they are asked
        for."""
        if name != "cells" or "_array" not in self.__dict__:
            raise AttributeError(name)
        self.__dict__["cells"] = cells = tuple(self._array.tolist())
        return cells

    def fits(self, shape: Shape) -> bool:
        return len(self._array) == prod(shape) and self._ends[0] >= 0

    def extent(self, shape: Shape, nibbles: int) -> tuple[int, int]:
        low, high = self._ends
        return low, high + nibbles

    def starts_on_bytes(self, shape: Shape) -> bool:
        return not bool((self._array % 2).any())

    def moved(self, by: int) -> Table:
        return Table.of(self._array + by) if by else self

    def run(self, box: Box, nibbles: int) -> int | None:
        """Not looked for."""
        return None

    def addresses(self, grid: Grid, shape: Shape) -> IntArray:
        every = self._array.reshape(shape)
        if all(map(np.array_equal, grid, map(np.arange, shape))):
            return every
        return np.asarray(every[np.ix_(*grid)])

    @cached_property
    def _ends(self) -> tuple[int, int]:
        return int(self._array.min()), int(self._array.max())

    @cached_property
    def _array(self) -> IntArray:
        every = np.array(self.cells, dtype=np.int64)
        every.flags.writeable = False
        return every


Map = Affine | Rows | Blocks | Table


def outer_sum(base: int, lines: list[IntArray]) -> IntArray:
    """``base`` and one number of each line added, for all combinations."""
    total = np.full((1,) * len(lines), base, dtype=np.int64)
    for axis, line in enumerate(lines):
        total = total + line.reshape([-1 if d == axis else 1 for d in range(len(lines))])
    return total


@lru_cache(1 << 8)
def packed(shape: Shape, bits: int, base: int = 0) -> Affine:
    """Row-major, elements side by side; strides in nibbles."""
    width = max(1, bits // 4)
    return Affine(base, tuple(width * prod(shape[d + 1 :]) for d in range(len(shape))))
