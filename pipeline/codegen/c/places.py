"""Elements that no strides lead to: tables in flash of where rows and pixels lie.

The first axes of a tensor are looked up, the others follow by strides: one axis where rows lie
anywhere, two where pixels do. A pixel whose channels do not lie side by side is scattered: its
entry has a flag and says where in a second table its elements' addresses begin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from pipeline.codegen.render import render
from pipeline.graph.tensor import IntArray
from pipeline.plan.maps import outer_sum
from pipeline.plan.vocabulary import Affine, Buffer

FLAGS = {16: 0x8000, 32: 0x8000_0000}
"""Flags of scattered pixels, by the bits of an entry: addresses are below."""


@dataclass(frozen=True)
class Lookup:
    """
    Attributes:
        extents: of the axes that are looked up.
        cells: what the table says of each combination of their indices.
        scattered: some pixels are.
    """

    extents: tuple[int, ...]
    cells: tuple[int, ...]
    scattered: bool
    table: Places = field(repr=False, compare=False)

    @property
    def axes(self) -> int:
        return len(self.extents)

    @property
    def first(self) -> int:
        """The entry of ``nn_row_places`` that all indices 0 have; from now on it is there."""
        return self.table.position(self.cells)


@dataclass(frozen=True)
class Layout:
    """Places of a buffer's elements, in bytes: ``lookup`` has them for the axes that it has."""

    base: int
    strides: tuple[int, ...]
    rings: tuple[int, ...]
    lookup: Lookup | None = None


@dataclass
class Places:
    """The tables that all buffers share.

    Attributes:
        entries: addresses in bytes; of scattered pixels -1 - n, where their elements begin in
            ``scattered``.
        held: where in them those of a buffer begin.
    """

    entries: list[int] = field(default_factory=list)
    scattered: list[int] = field(default_factory=list)
    layouts: dict[tuple[str, tuple[int, int]], Layout] = field(default_factory=dict)
    held: dict[tuple[int, ...], int] = field(default_factory=dict)

    def layout(self, buffer: Buffer) -> Layout:
        """Return the layout of a buffer whose elements are whole bytes."""
        place = buffer.name, buffer.extent  # of a copy
        if place not in self.layouts:
            self.layouts[place] = self._layout(buffer)
        return self.layouts[place]

    def _layout(self, buffer: Buffer) -> Layout:
        if isinstance(buffer.map, Affine):
            strides = tuple(stride // 2 for stride in buffer.map.strides)
            return Layout(buffer.map.base // 2, strides, buffer.map.rings)
        cells = buffer.addresses(buffer.box) // 2
        rank, width = cells.ndim, buffer.bits // 8
        for axes in range(rank + 1):
            steps = _strides(cells, axes, width)
            if steps is not None:
                held = _corners(cells, axes)
                if not axes:
                    return Layout(int(held), steps, (0,) * rank)
                lookup = Lookup(buffer.shape[:axes], tuple(held.reshape(-1).tolist()), False, self)
                return Layout(0, steps, (0,) * rank, lookup)
            if rank == 3 and axes == 2:
                break
        lookup = Lookup(buffer.shape[:2], tuple(self._scattered(cells, width)), True, self)
        return Layout(0, (0, 0, width), (0,) * rank, lookup)

    def _scattered(self, cells: IntArray, width: int) -> list[int]:
        """Entries of pixels, (h, w, c)."""
        found = []
        for pixel in cells.reshape(-1, cells.shape[2]):
            if (np.diff(pixel) == width).all():
                found.append(int(pixel[0]))
            else:
                found.append(-1 - len(self.scattered))
                self.scattered += pixel.tolist()
        return found

    def position(self, cells: tuple[int, ...]) -> int:
        """Return where ``cells`` begin in ``entries``, added if need be; the same are held once."""
        if cells not in self.held:
            self.held[cells] = len(self.entries)
            self.entries += cells
        return self.held[cells]

    def code(self) -> str:
        """C of the tables; "" without any."""
        if not self.entries:
            return ""
        largest = max(*self.entries, *self.scattered, len(self.scattered), 0)
        bits = next(bits for bits, flag in FLAGS.items() if largest < flag)
        entries = [n if n >= 0 else FLAGS[bits] - 1 - n for n in self.entries]
        return render(
            "int8/places.c.j2", type=f"uint{bits}_t", bits=bits, flag=FLAGS[bits], entries=entries,
            scattered=self.scattered,
        )  # fmt: skip


def _strides(cells: IntArray, axes: int, width: int) -> tuple[int, ...] | None:
    """Those of all axes after the first ``axes``, whatever the indices of these; None: it differs.
    Axes that are looked up have 0, those of one index what they have in a packed tensor."""
    inner = cells.shape[axes:]
    origin = (0,) * cells.ndim
    strides = [0] * axes
    for axis, extent in enumerate(inner, axes):
        one = tuple(int(a == axis) for a in range(cells.ndim))
        packed = width * prod(cells.shape[axis + 1 :])
        strides.append(int(cells[one] - cells[origin]) if extent > 1 else packed)
    lines = [step * np.arange(n) for step, n in zip(strides[axes:], inner, strict=True)]
    first = _corners(cells, axes).reshape(*cells.shape[:axes], *(1 for _ in inner))
    return tuple(strides) if (cells == first + outer_sum(0, lines)).all() else None


def _corners(cells: IntArray, axes: int) -> IntArray:
    """Return those of index 0 along all axes after the first ``axes``."""
    return np.asarray(cells.reshape(*cells.shape[:axes], -1)[..., 0])
