"""Elements of a buffer, looked up in arrays that say something about every cell of a memory.

A cell is ``grain`` nibbles: one, or two where nothing in the memory is smaller than a byte. Where
the elements are evenly spaced, at least in parts, those are strided views of such an array, which
cost no addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.reads import Axis, array
from pipeline.plan.vocabulary import Affine, Blocks, Buffer, Rows, Table

MOST_PARTS = 64
"""Most parts of an element set: with more, cells are looked up one by one."""


@dataclass(frozen=True)
class Part:
    """A part of the grid whose elements are evenly spaced.

    Attributes:
        within: which of the elements, a slice for each axis.
        base: nibble of the first.
        strides: nibbles from one to the next along each axis.
    """

    within: tuple[slice, ...]
    base: int
    strides: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(one.stop - one.start for one in self.within)

    @property
    def extent(self) -> tuple[int, int]:
        """The lowest and the highest first nibble of an element."""
        reaches = [n * (count - 1) for n, count in zip(self.strides, self.shape, strict=True)]
        low = self.base + sum(min(0, reach) for reach in reaches)
        return low, self.base + sum(max(0, reach) for reach in reaches)

    def runs(self, nibbles: int) -> tuple[IntArray, int]:
        """Elements of so many nibbles that lie side by side as one: where each such run starts, and
        how long all are."""
        axes, length = list(zip(self.strides, self.shape, strict=True)), nibbles
        while axes and (axes[-1][1] == 1 or axes[-1][0] == length):
            length *= axes.pop()[1]
        ranges = [range(count) for _, count in axes]
        starts = _outer(ranges, [stride for stride, _ in axes], self.base)
        return starts.reshape(-1), length


@dataclass(eq=False)
class Elements:
    """The elements of ``buffer`` at the grid of indices ``axes``, of one frame."""

    buffer: Buffer
    axes: tuple[Axis, ...]
    frame: int = 0

    def __post_init__(self) -> None:
        self.shape = tuple(map(len, self.axes))
        self.size = prod(self.shape)

    @classmethod
    def of(cls, buffer: Buffer, box: Box, frame: int = 0) -> Elements:
        return cls(buffer, tuple(range(start, stop) for start, stop in box), frame)

    @cached_property
    def ends(self) -> Box:
        """The smallest box around all of them, if there are any."""
        return tuple((int(axis[0]), int(axis[-1]) + 1) for axis in self.axes)

    @property
    def numbers(self) -> IntArray:
        """Row-major numbers of the elements in their tensor; shape ``shape``."""
        return self.numbered(1, 0)[..., 0]

    def numbered(self, count: int, base: int) -> IntArray:
        """``base`` and the numbers of their parts, ``count`` an element; shape (*shape, count)."""
        shape = (*self.buffer.shape, count)
        strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
        return _outer((*self.axes, range(count)), strides, base)

    @cached_property
    def addresses(self) -> IntArray:
        """The first nibble of each element; shape ``shape``."""
        return self.buffer.map.addresses([array(axis) for axis in self.axes], self.buffer.shape)

    @property
    def cells(self) -> IntArray:
        """Every nibble: shape (elements, nibbles of an element)."""
        return self.addresses.reshape(-1, 1) + np.arange(self.buffer.nibbles)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """No element lies below the first or at or above the second nibble."""
        if self.parts is None:
            return self.buffer.extent
        ends = [part.extent for part in self.parts]
        return min(low for low, _ in ends), max(high for _, high in ends) + self.buffer.nibbles

    def meets(self, other: Elements) -> bool:
        """Check whether the extents overlap; the cells in between may still be different ones."""
        if not self.buffer.meets(other.buffer):
            return False
        (low, high), (start, stop) = self.extent, other.extent
        return low < stop and start < high

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        """The grid cut where it goes round a ring: each part is evenly spaced. None if none is."""
        place = self.buffer.map
        if isinstance(place, Table) or not self.size:
            return None
        ranges = [axis for axis in self.axes if isinstance(axis, range)]
        if len(ranges) < len(self.axes):
            return None
        if isinstance(place, Rows):
            return self._rows(place, ranges)
        if isinstance(place, Blocks):
            return self._blocks(place, ranges)
        cuts = [_segments(axis, ring) for axis, ring in zip(ranges, self.buffer.wrap, strict=True)]
        if prod(map(len, cuts)) > MOST_PARTS:
            return None
        strides = tuple(n * axis.step for n, axis in zip(place.strides, ranges, strict=True))
        return tuple(
            Part(
                tuple(within for within, _ in chosen),
                place.base + sum(n * at for n, (_, at) in zip(place.strides, chosen, strict=True)),
                strides,
            )
            for chosen in product(*cuts)
        )

    def _rows(self, place: Rows, ranges: list[range]) -> tuple[Part, ...] | None:
        """Return one part a row."""
        if len(ranges[0]) > MOST_PARTS:
            return None
        rest = tuple(slice(0, len(axis)) for axis in ranges[1:])
        inner = list(zip(place.strides, ranges[1:], strict=True))
        strides = (0, *(stride * axis.step for stride, axis in inner))
        base = sum(stride * axis.start for stride, axis in inner)
        return tuple(
            Part((slice(n, n + 1), *rest), place.cells[row] + base, strides)
            for n, row in enumerate(ranges[0])
        )

    def _blocks(self, place: Blocks, ranges: list[range]) -> tuple[Part, ...] | None:
        """Return one part a row and a block of it."""
        rows, columns, channels = ranges
        _, extent, depth = self.buffer.shape
        found = list[Part]()
        for first, count in place.stretches(extent):
            begin = max(0, -(-(first - columns.start) // columns.step))
            stop = min(len(columns), -(-(first + count - columns.start) // columns.step))
            if begin >= stop:
                continue
            if len(found) + len(rows) > MOST_PARTS:
                return None
            within = (slice(begin, stop), slice(0, len(channels)))
            at = first * depth + columns[begin] - first + count * channels.start
            steps = (0, place.width * columns.step, place.width * count * channels.step)
            found += (
                Part((slice(n, n + 1), *within), place.cells[row] + place.width * at, steps)
                for n, row in enumerate(rows)
            )
        return tuple(found)

    @cached_property
    def apart(self) -> bool:
        """No two elements share a cell. False where that is not plain to see."""
        if self.parts is None or not isinstance(self.buffer.map, Affine):
            return False
        reaches, around = list[tuple[int, int]](), len(self.parts) > 1
        rings = zip(self.axes, self.buffer.map.strides, self.buffer.wrap, strict=True)
        for axis, stride, ring in rings:
            step = axis.step if isinstance(axis, range) else 1
            if ring and around:  # what went round lies among the others: all the ring is taken
                if step * (len(axis) - 1) >= ring:
                    return False
                reaches.append((abs(stride), ring))
            elif len(axis) > 1:
                reaches.append((abs(stride * step), len(axis)))
        room = self.buffer.nibbles
        for stride, count in sorted(reaches):
            if stride < room:
                return False
            room += stride * (count - 1)
        return True

    def take(self, array: npt.NDArray[Any], grain: int, origin: int = 0) -> npt.NDArray[Any]:
        """Look up every cell in ``array``: shape (*shape, cells of an element).

        ``array`` begins at nibble ``origin``.
        """
        if self.parts is None:
            return np.asarray(array[self._places(grain, origin)])
        if len(self.parts) == 1:
            return self._view(self.parts[0], array, grain, origin)
        found = np.empty((*self.shape, max(1, self.buffer.nibbles // grain)), array.dtype)
        for part in self.parts:
            found[part.within] = self._view(part, array, grain, origin)
        return found

    def put(
        self, array: npt.NDArray[Any], grain: int, values: npt.ArrayLike, origin: int = 0
    ) -> None:
        """Set every cell; ``values`` broadcast to (*shape, cells of an element)."""
        if self.parts is None:
            array[self._places(grain, origin)] = values
            return
        if len(self.parts) == 1 or not np.ndim(values):
            for part in self.parts:
                self._view(part, array, grain, origin)[...] = values
            return
        cells = max(1, self.buffer.nibbles // grain)
        every = np.broadcast_to(np.asarray(values), (*self.shape, cells))
        for part in self.parts:
            self._view(part, array, grain, origin)[...] = every[part.within]

    def granules(self, granule: int) -> IntArray:
        """The numbers of the granules, of so many nibbles, that elements lie in; ascending."""
        if self.parts is None:
            starts, length = self.addresses.reshape(-1), self.buffer.nibbles
            runs = [(starts, length)]
        else:
            runs = [part.runs(self.buffer.nibbles) for part in self.parts]
        first, stop = self.extent[0] // granule, (self.extent[1] - 1) // granule + 1
        edges = np.zeros(stop - first + 1, dtype=np.int64)
        for starts, length in runs:
            edges += np.bincount(starts // granule - first, minlength=len(edges))
            edges -= np.bincount((starts + length - 1) // granule + 1 - first, minlength=len(edges))
        return np.flatnonzero(np.cumsum(edges)) + first

    def _places(self, grain: int, origin: int) -> IntArray:
        parts = np.arange(max(1, self.buffer.nibbles // grain))
        return np.asarray((self.addresses[..., None] - origin) // grain + parts)

    def _view(
        self, part: Part, array: npt.NDArray[Any], grain: int, origin: int
    ) -> npt.NDArray[Any]:
        """Return a view, which numpy refuses to make beyond the ends of ``array``."""
        item = array.itemsize
        return np.ndarray(
            (*part.shape, max(1, self.buffer.nibbles // grain)),
            array.dtype,
            array.data,
            (part.base - origin) // grain * item,
            (*(stride // grain * item for stride in part.strides), item),
        )


def _segments(axis: range, ring: int) -> list[tuple[slice, int]]:
    """``axis`` cut where it passes the end of the ring: what of it, and where that begins."""
    if not ring:
        return [(slice(0, len(axis)), axis.start)]
    found, done = list[tuple[slice, int]](), 0
    while done < len(axis) and len(found) <= MOST_PARTS:
        place = axis[done] % ring
        count = min(len(axis) - done, (ring - 1 - place) // axis.step + 1)
        found.append((slice(done, done + count), place))
        done += count
    return found


def _outer(axes: Sequence[Axis], strides: Sequence[int], base: int) -> IntArray:
    """``base + Σ strides[d] * axes[d]`` for every place of the grid."""
    total = np.full((1,) * len(axes), base, dtype=np.int64)
    for d, (axis, stride) in enumerate(zip(axes, strides, strict=True)):
        total = total + (array(axis) * stride).reshape([-1, *(1,) * (len(axes) - 1 - d)])
    return total
