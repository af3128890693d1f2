"""The least peak with which a rectangle of outputs is peeled: rows and columns off any of its four
sides, one or a few at a time, each in either direction, until nothing is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.search.chains.side import NEVER, Rises, Side

MOST = 100_000
"""Rectangles within one that are tried; of larger ones only those at a corner, each in turn."""
THICKEST = 5


@dataclass(frozen=True)
class Cut:
    """``thickness`` rows, or columns, at one end of what is left, ``backwards`` from their last
    output on. Several go together: the first outputs of each, then the second."""

    by_row: bool
    at_end: bool
    backwards: bool
    thickness: int = 1

    def rest(self, rows: range, columns: range) -> tuple[range, range]:
        """What it leaves of an image's."""
        line = rows if self.by_row else columns
        kept = line[: -self.thickness] if self.at_end else line[self.thickness :]
        return (kept, columns) if self.by_row else (rows, kept)

    def flipped(self, rows: bool, columns: bool) -> Cut:
        """The same of an image that has its rows, or its columns, in reverse."""
        end, along = (rows, columns) if self.by_row else (columns, rows)
        return replace(self, at_end=self.at_end != end, backwards=self.backwards != along)


CUTS = tuple(
    Cut(by_row, at_end, backwards, thickness)
    for thickness in range(1, THICKEST + 1)
    for by_row, at_end, backwards in product((True, False), (False, True), (False, True))
)


@dataclass(frozen=True)
class Rectangle:
    """
    Attributes:
        rows, columns: what its outputs read along either axis; the inputs that it needs are the
            product of the two.
        fin, fout: nibbles of an input pixel and of an output pixel.
        in_corner: nothing is cut off its lower and its right end.
    """

    rows: Side
    columns: Side
    fin: int
    fout: int
    in_corner: bool = False

    def cuts(self) -> tuple[list[Cut], int]:
        """Those of the least peak, the first of ``CUTS`` where several are as good, and that peak:
        what is live once an output is written, of what they read and what they made."""
        best, found = self._best, list[Cut]()
        rows, columns = range(self.rows.outputs), range(self.columns.outputs)
        while rows and columns:
            size = len(rows), len(columns)
            options = [cut for cut in self._options if cut.thickness <= size[not cut.by_row]]
            found.append(min(options, key=lambda cut: self._peak(cut, rows, columns)))
            rows, columns = found[-1].rest(rows, columns)
        return found, int(best[-1][0, -1, 0])

    def _peak(self, cut: Cut, rows: range, columns: range) -> int:
        """Of these outputs, where ``cut`` comes first."""
        made = self.rows.outputs * self.columns.outputs - len(rows) * len(columns)
        rises, (line, along) = self._rises[_kind(cut)], (rows, columns)[:: 1 if cut.by_row else -1]
        of_line = self.rows.outputs if cut.by_row else self.columns.outputs
        kind = rises.kinds[line.start, line.stop - of_line - 1]
        table = rises.backwards if cut.backwards else rises.forwards
        rows, columns = cut.rest(rows, columns)
        top, left = (0, 0) if self.in_corner else (rows.start, columns.start)
        rest = int(self._best[len(rows)][top, len(columns), left]) if rows and columns else 0
        held = (
            self.rows.count[rows.start, rows.stop] * self.columns.count[columns.start, columns.stop]
        )
        now = made * self.fout + held * self.fin + table[kind, along.start, along.stop]
        return max(int(now), rest)

    @cached_property
    def _options(self) -> list[Cut]:
        return [cut for cut in CUTS if not (self.in_corner and cut.at_end)]

    @cached_property
    def _rises(self) -> dict[tuple[bool, bool, int], Rises]:
        return {kind: self._rise(*kind) for kind in dict.fromkeys(map(_kind, self._options))}

    def _rise(self, by_row: bool, at_end: bool, thickness: int) -> Rises:
        one, other = (self.rows, self.columns)[:: 1 if by_row else -1]
        stops = np.arange(one.outputs if self.in_corner else 0, one.outputs + 1)
        return Rises.of(one, other, at_end, thickness, stops, self.fin, self.fout)

    @cached_property
    def _best(self) -> list[IntArray]:
        """By height the least peak of each rectangle, (tops, widths, lefts); in the corner one top
        and one left."""
        height, width = self.rows.outputs, self.columns.outputs
        if self.in_corner:
            return [line[None, :, None] for line in self._best_in_corner()]
        wide = np.arange(width + 1)[:, None]
        left = np.arange(width + 1)[None] + 0 * wide
        right = np.minimum(left + wide, width)
        best = [np.zeros((height + 1, *left.shape), dtype=np.int64)]
        for high in range(1, height + 1):
            top = np.arange(height - high + 1)
            made = self.fout * (height * width - high * wide)
            found = self._by_rows(high, top, left, right, made, best)
            found[:, 0] = 0
            self._by_columns(high, top, left, right, made, found)
            best.append(found)
        return best

    def _best_in_corner(self) -> IntArray:
        """(heights, widths): one diagonal of them after the other, since a cut leaves less of
        height and width together."""
        height, width = self.rows.outputs, self.columns.outputs
        peaks = [
            (by_row, thick, _by_diagonal(self._in_corner(by_row, thick, rises.kinds, rises.least)))
            for (by_row, _, thick), rises in self._rises.items()
        ]
        best = np.zeros((height + width + 1, height + 1), dtype=np.int64)
        for both in range(2, height + width + 1):
            first, stop = max(1, both - width), min(height, both - 1) + 1
            here = np.full(stop - first, NEVER)
            for by_row, thickness, peak in peaks:
                low, high = first, stop
                if by_row:
                    low = max(first, thickness)
                else:
                    high = min(stop, both - thickness + 1)
                if low < high:
                    fewer = thickness if by_row else 0
                    after = best[both - thickness, low - fewer : high - fewer]
                    some = here[low - first : high - first]
                    np.minimum(some, np.maximum(peak[both, low:high], after), out=some)
            best[both, first:stop] = here
        highs, wides = np.indices((height + 1, width + 1))
        return np.asarray(best[highs + wides, highs])

    def _in_corner(
        self, by_row: bool, thickness: int, kinds: IntArray, table: IntArray
    ) -> IntArray:
        """(heights, widths): the peak of each rectangle while such a cut is made, which rises as
        ``table`` says."""
        height, width = self.rows.outputs, self.columns.outputs
        high, wide = np.arange(height + 1)[:, None], np.arange(width + 1)
        top, left = height - high[:, 0], width - wide
        if by_row:
            risen = table[kinds[top, 0]][:, left, width]
            top = np.minimum(top + thickness, height)
        else:
            risen = table[kinds[left, 0]][:, top, height].T
            left = np.minimum(left + thickness, width)
        held = np.outer(self.rows.count[top, height], self.columns.count[left, width]) * self.fin
        return np.asarray(self.fout * (height * width - high * wide) + held + risen)

    def turned_once(self, rows_first: bool) -> IntArray:
        """[n] the peak where n rows come first, and then columns, or the other way round, one by
        one from the first output on."""
        ways = {row: self._rise(row, False, 1) for row in (True, False)}
        by_rows, by_columns = (
            self._in_corner(row, 1, rises.kinds, rises.forwards) for row, rises in ways.items()
        )
        first, then = (by_rows, by_columns) if rows_first else (by_columns.T, by_rows.T)
        lines = np.maximum.accumulate(np.append(0, first[:0:-1, -1]))
        rest = then[::-1, 1:].max(axis=1)
        rest[-1] = 0  # nothing is left
        return np.asarray(np.maximum(lines, rest))

    def _by_rows(
        self, high: int, top: IntArray, left: IntArray, right: IntArray, made: IntArray,
        best: Sequence[IntArray],
    ) -> IntArray:  # fmt: skip
        """Where rows come first."""
        found = np.full((len(top), *left.shape), NEVER, dtype=np.int64)
        across = self.columns.count[left, right] * self.fin
        for (by_row, at_end, thickness), rises in self._rises.items():
            inner, first = high - thickness, 0 if at_end else thickness
            if not by_row or inner < 0:
                continue
            held = self.rows.count[top + first, top + first + inner]
            kinds = rises.kinds[top, top + high - self.rows.outputs - 1]
            peak = rises.least[:, left, right][kinds]
            peak += made
            peak += held[:, None, None] * across
            after = best[inner][first:][: len(top)]
            np.minimum(found, np.maximum(peak, after, out=peak), out=found)
        return found

    def _by_columns(
        self, high: int, top: IntArray, left: IntArray, right: IntArray, made: IntArray,
        found: IntArray,
    ) -> None:  # fmt: skip
        """Where columns come first, if that is less than what is ``found``."""
        width, down = self.columns.outputs, self.rows.count[top, top + high] * self.fin
        cuts = list[tuple[int, int, IntArray]]()
        for (by_row, at_end, thickness), rises in self._rises.items():
            if by_row or thickness > width:
                continue
            first = 0 if at_end else thickness
            start = np.minimum(left + first, width)
            stop = np.maximum(right - thickness + first, start)
            kinds = rises.kinds[left, right - width - 1]
            peak = np.moveaxis(rises.least[:, top, top + high][kinds], 2, 0)
            held = self.columns.count[start, stop] * down[:, None, None]
            cuts.append((thickness, first, peak + held + made))
        for wide in range(1, width + 1):
            number = width - wide + 1
            here = found[:, wide, :number]
            for thickness, first, peak in cuts:
                if thickness <= wide:
                    after = found[:, wide - thickness, first : first + number]
                    np.minimum(here, np.maximum(peak[:, wide, :number], after), out=here)


def _by_diagonal(peaks: IntArray) -> IntArray:
    """[a + b, a] of ``peaks`` [a, b]; NEVER elsewhere."""
    first, second = np.indices(peaks.shape)
    found = np.full((sum(peaks.shape) - 1, len(peaks)), NEVER, dtype=np.int64)
    found[first + second, first] = peaks
    return found


def _kind(cut: Cut) -> tuple[bool, bool, int]:
    return cut.by_row, cut.at_end, cut.thickness


def peeling(rows: Side, columns: Side, fin: int, fout: int) -> tuple[list[Cut], int]:
    """Cuts of the least peak that is found, and that; see ``Rectangle.cuts``."""
    (high, wide), found = (rows.outputs, columns.outputs), list[tuple[list[Cut], int]]()
    if high * (high + 1) * wide * (wide + 1) // 4 <= MOST:
        return Rectangle(rows, columns, fin, fout).cuts()
    for up, back in product((False, True), repeat=2):
        if (up and rows.even) or (back and columns.even):
            continue  # as from the other end
        sides = rows.flipped if up else rows, columns.flipped if back else columns
        cuts, peak = Rectangle(*sides, fin=fin, fout=fout, in_corner=True).cuts()
        found.append(([cut.flipped(up, back) for cut in cuts], peak))
    return min(found, key=lambda each: each[1])


def peeled(cuts: Sequence[Cut], rows: range, columns: range) -> list[tuple[bool, int, range]]:
    """Lines of ``cuts`` off these rows and columns: whether one is of a row, which, what of it."""
    found = list[tuple[bool, int, range]]()
    for cut in cuts:
        line, across = (rows, columns) if cut.by_row else (columns, rows)
        across = across[::-1] if cut.backwards else across
        some = line[-cut.thickness :][::-1] if cut.at_end else line[: cut.thickness]
        if cut.thickness == 1:
            found.append((cut.by_row, some[0], across))
        else:
            found += [(not cut.by_row, n, some) for n in across]
        rows, columns = cut.rest(rows, columns)
    return found
