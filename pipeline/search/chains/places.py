"""Where the pixels of a tensor lie: nearly all of them in one piece each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.search.chains.free_cells import Cells
from pipeline.search.chains.layer import Pixels


@dataclass
class Places:
    """
    Attributes:
        channels: of a pixel, or of a group of them; ``width``: nibbles of an element.
        first: the first nibble of each pixel; -1 where it is in several pieces.
        apart: the addresses of those pixels' elements.
    """

    channels: int
    width: int
    first: list[int]
    apart: dict[int, IntArray] = field(default_factory=dict)

    @classmethod
    def none(cls, pixels: Pixels, groups: int) -> Places:
        """That are still to be put."""
        return cls(
            pixels.channels // groups, pixels.nibbles_per_element, [0] * (pixels.number * groups)
        )

    @classmethod
    def of(cls, elements: IntArray, pixels: Pixels, groups: int) -> Places:
        """``elements``: the address of each."""
        cells = elements.reshape(pixels.number * groups, -1)
        whole = (np.diff(cells, axis=1) == pixels.nibbles_per_element).all(axis=1)
        apart = {int(n): cells[n] for n in np.flatnonzero(~whole)}
        first = np.where(whole, cells[:, 0], -1).tolist()
        return cls(cells.shape[1], pixels.nibbles_per_element, first, apart)

    @property
    def cells(self) -> IntArray:
        """The address of each element, (pixels, channels)."""
        found = np.array(self.first)[:, None] + np.arange(self.channels) * self.width
        for pixel, cells in self.apart.items():
            found[pixel] = cells
        return found

    def at(self, pixel: int) -> int | IntArray:
        return self.apart[pixel] if self.first[pixel] < 0 else self.first[pixel]

    def put(self, pixel: int, place: int | IntArray) -> None:
        if isinstance(place, int):
            self.first[pixel] = place
        else:
            self.first[pixel], self.apart[pixel] = -1, place

    def releaser(self, arena: Cells) -> Callable[[Iterable[int]], None]:
        """Frees the cells of these pixels."""
        first, size, marks = self.first, self.channels * self.width, arena.marks
        free = b"\1" * size

        def release(pixels: Iterable[int]) -> None:
            for pixel in pixels:
                if (begin := first[pixel]) >= 0:
                    marks[begin : begin + size] = free
                else:
                    arena.release(self.apart[pixel], self.width)

        return release
