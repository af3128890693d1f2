"""The least peak with which a rectangle of outputs is peeled: rows and columns off any of its four
sides, one or a few at a time, each in either direction, until nothing is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from pipeline.graph.tensor import IntArray

MOST = 8_000_000
"""Rectangles within one that are tried; of larger ones only those at its lower right corner."""
THICKEST = 5
NEVER = 1 << 40


@dataclass(frozen=True)
class Cut:
    """``thickness`` rows, or columns, at one end of what is left, ``backwards`` from their last
    output on. Several go together: the first outputs of each, then the second."""

    by_row: bool
    at_end: bool
    backwards: bool
    thickness: int = 1


CUTS = tuple(
    Cut(by_row, at_end, backwards, thickness)
    for thickness in range(1, THICKEST + 1)
    for by_row, at_end, backwards in product((True, False), (False, True), (False, True))
)


@dataclass(frozen=True)
class Side:
    """One axis of a rectangle.

    Attributes:
        reads: (outputs, inputs), whether one reads the other.
    """

    reads: IntArray

    @property
    def outputs(self) -> int:
        return len(self.reads)

    @cached_property
    def count(self) -> IntArray:
        """[a, b] inputs that outputs a to b (exclusive) read, (outputs + 1, outputs + 1)."""
        found = np.zeros((self.outputs + 1, self.outputs + 1), dtype=np.int64)
        for first in range(self.outputs):
            found[first, first + 1 :] = np.logical_or.accumulate(self.reads[first:]).sum(axis=1)
        return found

    def freed(self, cut: Cut) -> IntArray:
        """[a, b, j] inputs that nothing reads any more once j + 1 of the lines of ``cut`` are off
        outputs a to b; (outputs + 1, outputs + 1, thickness)."""
        a, b = np.indices(self.count.shape)
        several = range(1, cut.thickness + 1)
        left = [(a, b - n) if cut.at_end else (a + n, b) for n in several]
        most = self.outputs
        kept = [self.count[np.minimum(first, most), np.maximum(last, 0)] for first, last in left]
        return np.stack([self.count - each for each in kept], axis=2)

    def rise(self, freed: IntArray, backwards: bool, fin: int, fout: int) -> IntArray:
        """[a, b] nibbles that lines of outputs a to b hold at most and write while they are
        computed; ``freed``: of the other axis, by the number of lines."""
        found = np.full(self.count.shape, -NEVER, dtype=np.int64)
        numbers = np.arange(1, len(freed) + 1)
        for length in range(1, self.outputs + 1):
            a = np.arange(self.outputs - length + 1)
            b = a + length
            inner = (a, b - 1) if backwards else (a + 1, b)
            before, after = self.count[a, b, None], self.count[*inner][:, None]
            live = fin * ((freed[-1] - freed) * before + freed * after) + fout * numbers
            found[a, b] = np.maximum(live.max(axis=1), fout * len(freed) + found[*inner])
        return found


@dataclass(frozen=True)
class Rectangle:
    """
    Attributes:
        rows, columns: what its outputs read along either axis; the inputs that it needs are the
            product of the two.
        fin, fout: nibbles of an input pixel and of an output pixel.
    """

    rows: Side
    columns: Side
    fin: int
    fout: int

    def cuts(self) -> tuple[list[Cut], int]:
        """Those of the least peak, the first of ``CUTS`` where several are as good, and that peak:
        what is live once an output is written, of what they read and what they made."""
        best, found = self._best, list[Cut]()
        (top, bottom), (left, right) = (0, self.rows.outputs), (0, self.columns.outputs)
        while bottom > top and right > left:
            size = bottom - top, right - left
            corner = np.array([[top]]), np.array([[left]])
            options = [cut for cut in self._options if cut.thickness <= size[not cut.by_row]]
            peaks = [int(self._peak(cut, *corner, *size, best)[0, 0]) for cut in options]
            cut = options[int(np.argmin(peaks))]
            found.append(cut)
            first, last = (0, cut.thickness) if cut.at_end else (cut.thickness, 0)
            if cut.by_row:
                top, bottom = top + first, bottom - last
            else:
                left, right = left + first, right - last
        return found, int(best[self.rows.outputs, self.columns.outputs][0, 0])

    @cached_property
    def _in_corner(self) -> bool:
        height, width = self.rows.outputs, self.columns.outputs
        return height * (height + 1) * width * (width + 1) // 4 > MOST

    @cached_property
    def _options(self) -> list[Cut]:
        return [cut for cut in CUTS if not (self._in_corner and cut.at_end)]

    @cached_property
    def _best(self) -> dict[tuple[int, int], IntArray]:
        """By height and width the least peak of each rectangle of that size, by its first row and
        column."""
        height, width = self.rows.outputs, self.columns.outputs
        best = dict[tuple[int, int], IntArray]()
        for size in product(range(1, height + 1), range(1, width + 1)):
            top, left = (
                np.arange(most - n if self._in_corner else 0, most - n + 1)
                for most, n in zip((height, width), size, strict=True)
            )
            peaks = (
                self._peak(cut, top[:, None], left[None], *size, best)
                for cut in self._options
                if cut.thickness <= size[not cut.by_row]
            )
            best[size] = np.minimum.reduce(list(peaks))
        return best

    def _peak(
        self,
        cut: Cut,
        top: IntArray,
        left: IntArray,
        high: int,
        wide: int,
        best: dict[tuple[int, int], IntArray],
    ) -> IntArray:
        """Of the rectangles of ``high`` × ``wide`` outputs from ``top`` and ``left`` on, where
        ``cut`` comes first."""
        one, other = (self.rows, self.columns) if cut.by_row else (self.columns, self.rows)
        start, across = (top, left) if cut.by_row else (left, top)
        size, length = (high, wide) if cut.by_row else (wide, high)
        rest, stop = start + (0 if cut.at_end else cut.thickness), across + length
        inner = size - cut.thickness
        kinds, rises = self._rises[cut]
        done = self.rows.outputs * self.columns.outputs - high * wide
        held = one.count[rest, rest + inner] * other.count[across, stop] * self.fin
        peak: IntArray = done * self.fout + held + rises[kinds[start, start + size], across, stop]
        if not inner:
            return peak
        after = best[(inner, wide) if cut.by_row else (high, inner)]
        where = (rest, across) if cut.by_row else (across, rest)
        return np.maximum(peak, after if self._in_corner else after[where])

    @cached_property
    def _rises(self) -> dict[Cut, tuple[IntArray, IntArray]]:
        """For each cut: [a, b] which of the rises it has off outputs a to b; those."""
        found = {}
        for cut in self._options:
            one, other = (self.rows, self.columns) if cut.by_row else (self.columns, self.rows)
            freed = one.freed(cut)
            alike, kinds = np.unique(freed.reshape(-1, cut.thickness), axis=0, return_inverse=True)
            rises = [other.rise(each, cut.backwards, self.fin, self.fout) for each in alike]
            found[cut] = kinds.reshape(freed.shape[:2]), np.stack(rises)
        return found


def peeled(cuts: Sequence[Cut], rows: range, columns: range) -> list[tuple[bool, int, range]]:
    """Lines of ``cuts`` off these rows and columns: whether one is of a row, which, what of it."""
    found = list[tuple[bool, int, range]]()
    for cut in cuts:
        line, across = (rows, columns) if cut.by_row else (columns, rows)
        across = across[::-1] if cut.backwards else across
        some = line[-cut.thickness :][::-1] if cut.at_end else line[: cut.thickness]
        rest = line[: -cut.thickness] if cut.at_end else line[cut.thickness :]
        if cut.thickness == 1:
            found.append((cut.by_row, some[0], across))
        else:
            found += [(not cut.by_row, n, some) for n in across]
        rows, columns = (rest, columns) if cut.by_row else (rows, rest)
    return found
