"""The nibbles of an arena, free or taken, and where the pixels of a tensor lie in it."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from pipeline.graph.tensor import IntArray, Tensor
from pipeline.placement.blocks import round_up
from pipeline.plan.vocabulary import Affine, Buffer, Table, packed
from pipeline.search.view.pixels import Pixels

Place = int | IntArray
"""The first nibble of a pixel, or of a group of its channels; each of them if in several pieces."""


class Full(Exception):
    """No aligned cells for an element: with mixed widths free nibbles are not all alike."""


def at(tensor: Tensor, base: int) -> Buffer:
    """``tensor``, row-major in one piece from nibble ``base``; the schedule names the memory."""
    shape, bits = tensor.shape, tensor.dtype.bits
    return Buffer(tensor.name, tensor.name, "", shape, bits, packed(shape, bits, base))


def buffer(tensor: Tensor, elements: IntArray, name: str = "") -> Buffer:
    """``tensor``, its elements at the given nibbles (tensor's shape): by an affine map if one fits,
    else by a table."""
    base, shape = int(elements.flat[0]), tensor.shape
    steps = (np.diff(elements, axis=axis) for axis in range(elements.ndim))
    strides = tuple(int(step.flat[0]) if step.size else 0 for step in steps)
    line = base + sum(map(np.multiply, strides, np.indices(shape, sparse=True)))
    address = Affine(base, strides) if np.array_equal(line, elements) else Table.of(elements)
    return Buffer(name or tensor.name, tensor.name, "", shape, tensor.dtype.bits, address)


def places(buffer: Buffer, number: int) -> list[Place]:
    """Return the places of so many equal parts, one after the other."""
    cells = buffer.cells(buffer.box).reshape(number, -1)
    found: list[Place] = cells[:, 0].tolist()
    for n in np.flatnonzero((np.diff(cells, axis=1) != 1).any(axis=1)).tolist():
        found[n] = cells[n]
    return found


def lying(tensor: Tensor, places: Sequence[Place], name: str = "") -> Buffer:
    """``tensor``, of which so many equal parts are there, one after the other."""
    width, size = Pixels.of(tensor).nibbles_per_element, Pixels.of(tensor).total // len(places)
    cells = [np.arange(n, n + size) if isinstance(n, int) else n for n in places]
    return buffer(tensor, np.stack(cells)[:, ::width].reshape(tensor.shape), name)


class Cells:
    """An arena of ``size`` nibbles. ``next`` is where the last search ended."""

    def __init__(self, size: int) -> None:
        self.size, self.next = size, 0
        self.marks = bytearray(b"\1") * size
        self.free = np.frombuffer(self.marks, dtype=bool)  # the same bytes

    def block(self, pixels: Pixels) -> int | None:
        """Room for all the pixels in one aligned piece."""
        found = self.run(pixels.total, max(2, pixels.nibbles_per_element))
        if found is not None:
            self.next = found + pixels.total
        return found

    def run(self, length: int, align: int, start: int = 0) -> int | None:
        """The first address >= ``start`` of ``length`` free nibbles, a multiple of ``align``."""
        wanted, found = b"\1" * length, round_up(start, align)
        while (found := self.marks.find(wanted, found)) >= 0:
            if found % align == 0:
                return found
            found = round_up(found, align)
        return None

    def take(self, channels: int, width: int) -> Place:
        """Room for so many elements of a pixel, of ``width`` nibbles each.

        Goes round the arena, so that outputs follow the trail of dying inputs: first a run that
        starts on a byte (unless pixels of odd size would leave holes), then any run, then pieces.
        """
        each = channels * width
        for align in (width,) if each % 2 else (max(2, width), width):
            for start in (self.next, 0):
                if (found := self.run(each, align, start)) is not None:
                    self.next = found + each
                    self.marks[found : self.next] = bytes(each)
                    return found
        return self.pieces(channels, width)

    def pieces(self, count: int, width: int) -> IntArray:
        """``count`` elements in as few runs as possible: large runs whole, then the best fit."""
        places = self.free[: self.size // width * width].view(f"u{width}")  # many marks at once
        usable = places == int.from_bytes(b"\1" * width)
        change = np.flatnonzero(usable[1:] != usable[:-1]) + 1
        edges = np.concatenate([[0], change, [len(usable)]])[0 if usable[:1].any() else 1 :]
        begins, lengths = edges[:-1:2], edges[1::2] - edges[:-1:2]
        order = np.lexsort((begins, lengths)).tolist()
        chosen: list[IntArray] = []
        while count and order:
            fitting = bisect_left(order, count, hi=len(order) - 1, key=lambda n: lengths[n])
            first, length = begins[order[fitting]], lengths[order[fitting]]
            chosen.append(np.arange(first, first + min(length, count)) * width)
            count -= len(chosen[-1])
            order.pop()  # if another was chosen, it was the last one needed
        if count:
            raise Full
        found = (np.sort(np.concatenate(chosen))[:, None] + np.arange(width)).reshape(-1)
        self.free[found] = False
        return found

    def release(self, place: Place, nibbles: int) -> None:
        if isinstance(place, int):
            self.marks[place : place + nibbles] = b"\1" * nibbles
        else:
            self.free[place] = True

    def hold(self, buffer: Buffer, free: bool = False) -> None:
        if buffer.run(buffer.box) is not None:
            self.free[slice(*buffer.extent)] = free
        else:
            self.free[buffer.cells(buffer.box)] = free
