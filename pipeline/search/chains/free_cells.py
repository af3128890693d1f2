"""The nibbles of an arena, free or taken."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import round_up
from pipeline.search.chains.layer import Pixels

WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
"""As wide as so many marks."""


class Full(Exception):
    """No aligned cells for an element: with mixed widths free nibbles are not all alike."""


@dataclass
class Cells:
    """An arena of ``size`` nibbles. ``next`` is where the last search ended."""

    size: int

    def __post_init__(self) -> None:
        self.marks = bytearray(b"\1" * self.size)
        self.free = np.frombuffer(self.marks, dtype=bool)  # the same bytes
        self.next = 0

    def only(self, taken: Iterable[tuple[IntArray, int]]) -> None:
        """Take these elements, each so many nibbles wide, and free all others."""
        self.free[:] = True
        for elements, width in taken:
            self.claim(elements, width)

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

    def taker(self, pixel: Pixels, channels: int) -> Callable[[], int | IntArray]:
        """Each call takes a place for so many elements of a pixel: from which nibble on, or, in
        several pieces, the addresses of all, shape (channels,).

        Goes round the arena, so that outputs follow the trail of dying inputs: first a run that
        starts on a byte (unless pixels of odd size would leave holes), then any run, then pieces.
        """
        width = pixel.nibbles_per_element
        each = channels * width
        aligns = (width,) if each % 2 else (max(2, width), width)
        marks, free, taken, first = self.marks, b"\1" * each, bytes(each), aligns[0]

        def take() -> int | IntArray:
            found = marks.find(free, -(-self.next // first) * first)
            if found < 0 or found % first:  # as often as not the very next
                found = next((n for n in runs() if n is not None), -1)
            if found < 0:
                return self.pieces(channels, width)
            self.next = found + each
            marks[found : found + each] = taken
            return found

        def runs() -> Iterator[int | None]:
            return (self.run(each, align, start) for align in aligns for start in (self.next, 0))

        return take

    def pieces(self, count: int, width: int) -> IntArray:
        """``count`` elements in as few runs as possible: large runs whole, then the best fit."""
        usable = self._usable(width)
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
        return self.claim(np.sort(np.concatenate(chosen)), width)

    def _usable(self, width: int) -> npt.NDArray[np.bool_]:
        """Whether all nibbles of each place for an element are free, (size // width,)."""
        cells = self.free[: self.size // width * width]
        if width in WORDS:  # several marks compared at once
            return np.asarray(cells.view(WORDS[width]) == int.from_bytes(b"\1" * width, "little"))
        return np.asarray(cells.reshape(-1, width).all(axis=1))

    def claim(self, elements: IntArray, width: int) -> IntArray:
        self._mark(elements, width, free=False)
        return elements

    def release(self, elements: IntArray, width: int) -> None:
        self._mark(elements, width, free=True)

    def _mark(self, elements: IntArray, width: int, free: bool) -> None:
        cells = elements.reshape(-1)
        if len(cells) and (np.diff(cells) == width).all():
            self.free[cells[0] : cells[-1] + width] = free
        else:
            for nibble in range(width):
                self.free[cells + nibble] = free
