"""The nibbles of an arena, free or taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.search.chains.layer import Pixels


class Full(Exception):
    """No aligned cells for an element: with mixed widths free nibbles are not all alike."""


@dataclass
class Cells:
    """An arena of ``size`` nibbles. ``next`` is where the last search ended."""

    size: int

    def __post_init__(self) -> None:
        self.free = np.ones(self.size, dtype=bool)
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
        first = -(-start // align) * align
        if self.free[first : first + length].sum() == length:
            return first
        total = np.concatenate([[0], np.cumsum(self.free)])
        at = np.arange(first, self.size - length + 1, align)
        found = at[total[at + length] - total[at] == length]
        return int(found[0]) if found.size else None

    def take(self, pixel: Pixels) -> IntArray:
        """Addresses of a pixel's elements, now taken: shape (channels,).

        Goes round the arena, so that outputs follow the trail of dying inputs: first a run that
        starts on a byte (unless pixels of odd size would leave holes), then any run, then pieces.
        """
        width = pixel.nibbles_per_element
        for align in (width,) if pixel.each % 2 else (max(2, width), width):
            for start in (self.next, 0):
                found = self.run(pixel.each, align, start)
                if found is not None:
                    self.next = found + pixel.each
                    return self.claim(found + np.arange(0, pixel.each, width), width)
        return self.pieces(pixel.channels, width)

    def pieces(self, count: int, width: int) -> IntArray:
        """``count`` elements in as few runs as possible: large runs whole, then the best fit."""
        usable = self.free[: self.size // width * width].reshape(-1, width).all(axis=1)
        edge = np.flatnonzero(np.diff(np.concatenate([[0], usable.astype(np.int8), [0]])))
        runs = sorted(zip(edge[1::2] - edge[::2], edge[::2], strict=True))
        chosen: list[IntArray] = []
        while count and runs:
            fitting = next((n for n, (length, _) in enumerate(runs) if length >= count), -1)
            length, first = runs.pop(fitting)
            chosen.append(np.arange(first, first + min(length, count)) * width)
            count -= len(chosen[-1])
        if count:
            raise Full
        return self.claim(np.sort(np.concatenate(chosen)), width)

    def claim(self, elements: IntArray, width: int) -> IntArray:
        self.free[nibbles(elements, width)] = False
        return elements

    def release(self, elements: IntArray, width: int) -> None:
        self.free[nibbles(elements, width)] = True


def nibbles(elements: IntArray, width: int) -> IntArray:
    """All nibbles of elements that are ``width`` nibbles wide."""
    return (elements.reshape(-1, 1) + np.arange(width)).reshape(-1)
