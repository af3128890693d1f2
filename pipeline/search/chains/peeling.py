"""The order of a layer's pixels with the least peak that is found: parts that share no input one
after the other, and of each rows and columns off all four sides, a few at a time, each in either
direction, until nothing is left."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from pipeline.graph.access import Window
from pipeline.graph.tensor import IntArray
from pipeline.plan.reads import positions
from pipeline.search.chains.traversals import Peel, Peels
from pipeline.search.view.pixels import Layer

NEVER = 1 << 40
MOST = 100_000
"""Rectangles within one that are tried; of larger ones only those at a corner, each in turn."""
THICKEST = 5

Spans = int | IntArray
"""Numbers of spans along one axis of a rectangle."""


class Cut(NamedTuple):
    """``thickness`` rows, or columns, off one end of what is left, ``backwards`` from their last
    output on. Several go together: the first outputs of each, then the second."""

    thickness: int
    by_row: bool
    at_end: bool = False
    backwards: bool = False


class Side:
    """One axis of a rectangle of outputs: the spans of them that can be left, each with a number.

    Attributes:
        first, stop: of each span, outputs ``first`` to ``stop`` (exclusive); ``length`` of it.
        number: [a, b] which span is that of outputs a to b; -1 where none is, as where a cut
            reaches beyond the other end.
        count: [a, b] inputs that outputs a to b read; ``inputs``: those of each span.
    """

    def __init__(self, reads: IntArray, in_corner: bool = False) -> None:
        """``reads``: (outputs, inputs), whether one reads the other; ``in_corner``: nothing is cut
        off the end."""
        self.outputs = len(reads)
        left = np.tri(self.outputs + 1, dtype=bool).T
        left[:, : self.outputs if in_corner else 0] = False
        self.first, self.stop = np.nonzero(left)
        self.length = self.stop - self.first
        self.number = np.full((self.outputs + 1 + THICKEST,) * 2, -1)
        self.number[self.first, self.stop] = np.arange(len(self.first))
        self.count = np.zeros_like(self.number)
        for first in range(self.outputs):
            read = np.logical_or.accumulate(reads[first:])
            self.count[first, first + 1 : self.outputs + 1] = np.count_nonzero(read, axis=1)
        self.inputs = self.count[self.first, self.stop]

    def rest(self, cut: Cut, spans: Spans) -> IntArray:
        """The spans that ``cut`` leaves of some; -1 where it is thicker."""
        return self._without(cut.thickness, cut.at_end, self.number, spans)

    def freed(self, cut: Cut) -> IntArray:
        """Inputs that nothing reads any more once so many lines are off a span, (spans, lines)."""
        every, lines = np.arange(len(self.first)), range(1, cut.thickness + 1)
        kept = [self._without(n, cut.at_end, self.count, every) for n in lines]
        return self.inputs[:, None] - np.stack(kept, axis=1)

    def _without(self, lines: int, at_end: bool, table: IntArray, spans: Spans) -> IntArray:
        top, bottom = (0, lines) if at_end else (lines, 0)
        return np.asarray(table[self.first[spans] + top, self.stop[spans] - bottom])


class Rectangle:
    """Outputs that are cut off, some lines at a time, until nothing is left."""

    def __init__(
        self, rows: IntArray, columns: IntArray, fin: int, fout: int, in_corner: bool = False
    ) -> None:
        """``rows``, ``columns``: (outputs, inputs), what is read along either axis; the inputs of
        some outputs are the product of the two. ``fin``, ``fout``: nibbles of an input pixel and of
        an output pixel. ``in_corner``: nothing is cut off the lower and the right end."""
        self.sides = Side(rows, in_corner), Side(columns, in_corner)
        self.fin, self.fout = fin, fout
        ends = (False,) if in_corner else (False, True)
        options = product(range(1, THICKEST + 1), (True, False), ends)
        self.options = [Cut(*option) for option in options]
        self.known = dict[Cut, tuple[IntArray, IntArray]]()

    @property
    def whole(self) -> tuple[Spans, Spans]:
        """The spans of all rows and of all columns."""
        rows, columns = (side.number[0, side.outputs] for side in self.sides)
        return rows, columns

    @property
    def least(self) -> int:
        """The least peak: what is live once an output is written, of what they read and made."""
        return int(self._best[0][self.whole])

    def cuts(self) -> list[Cut]:
        """Those of the least peak, of several as good the first of ``options``, forwards."""
        (best, first), found, (row, column) = self._best, list[Cut](), self.whole
        while self.sides[0].length[row] and self.sides[1].length[column]:
            cut = self.options[first[row, column]]
            backwards = bool(self.peak(cut, row, column) > best[row, column])
            found.append(cut._replace(backwards=backwards))
            row, column = self._after(cut, row, column)
        return found

    @cached_property
    def _best(self) -> tuple[IntArray, IntArray]:
        """The least peak of what is left, by spans of rows and of columns, and which of ``options``
        begins there; those with the least height and width together first, since a cut leaves less.
        """
        high, wide = (side.length for side in self.sides)
        best = np.full((len(high) + 1, len(wide) + 1), NEVER)  # the last ones are none
        best[:-1, :-1] = 0
        first = np.zeros_like(best)
        spans = np.indices((len(high), len(wide)), sparse=True)
        peaks = list[tuple[Cut, IntArray]]()
        for cut in self.options:
            ways = (self.peak(cut._replace(backwards=way), *spans) for way in (False, True))
            peaks.append((cut, np.minimum(*ways)))
        size = np.where(np.minimum.outer(high, wide) > 0, np.add.outer(high, wide), 0).ravel()
        turn = np.argsort(size, kind="stable")
        ends = np.searchsorted(size[turn], np.arange(2, int(size.max()) + 1))
        for alike in np.split(turn, ends)[1:]:
            some = np.divmod(alike, len(wide))
            after = [np.maximum(peak[some], best[self._after(cut, *some)]) for cut, peak in peaks]
            best[some], first[some] = np.min(after, axis=0), np.argmin(after, axis=0)
        return best, first

    def _after(self, cut: Cut, row: Spans, column: Spans) -> tuple[Spans, Spans]:
        """The spans that ``cut`` leaves."""
        if cut.by_row:
            return self.sides[0].rest(cut, row), column
        return row, self.sides[1].rest(cut, column)

    def peak(self, cut: Cut, row: Spans, column: Spans) -> IntArray:
        """The most that is live while ``cut`` comes off what is left."""
        turn = 1 if cut.by_row else -1
        (one, other), (spans, along) = self.sides[::turn], (row, column)[::turn]
        if cut not in self.known:
            lines, kinds = np.unique(one.freed(cut), axis=0, return_inverse=True)
            risen = self._rises(lines, other.count[: other.outputs + 1, : other.outputs + 1], cut)
            self.known[cut] = kinds.reshape(-1), risen[:, other.first, other.stop]
        kinds, rises = self.known[cut]
        high, wide = self.sides
        made = high.outputs * wide.outputs - high.length[row] * wide.length[column]
        held = one.inputs[one.rest(cut, spans)] * other.inputs[along]
        return np.asarray(made * self.fout + held * self.fin + rises[kinds[spans], along])

    def _rises(self, freed: IntArray, count: IntArray, cut: Cut) -> IntArray:
        """[kind, a, b] nibbles that lines of outputs a to b hold at most and write while they are
        computed; ``freed``: (kinds, lines). With p outputs of each line to go, what is live has
        grown by those that are made and shrunk by the inputs of which only those p were left:
        ``rise(a, b) = max(live(a, b), lines * fout + rise(a + 1, b))``, and so from the other end.
        """
        inner = np.zeros_like(count)
        if cut.backwards:
            inner[:, 1:] = count[:, :-1]
        else:
            inner[:-1] = count[1:]
        live = np.full((len(freed), *count.shape), -NEVER)
        for n, after in enumerate(freed.T[..., None, None]):
            before = freed[:, -1, None, None] - after
            now = self.fin * (before * count + after * inner) + self.fout * (n + 1)
            np.maximum(live, now, out=live)
        live[:, np.tri(len(count), dtype=bool)] = -NEVER  # of no outputs
        made = cut.thickness * self.fout * np.arange(len(count))
        if cut.backwards:
            return np.asarray(np.maximum.accumulate(live - made, axis=2) + made)
        there = live + made[:, None]
        return np.asarray(np.maximum.accumulate(there[:, ::-1], axis=1)[:, ::-1] - made[:, None])


def peeling(
    rows: IntArray, columns: IntArray, fin: int, fout: int
) -> tuple[int, list[Cut], tuple[int, int]]:
    """The least peak that is found and its cuts; -1 where they are of rows, or of columns, in
    reverse, else 1. See ``Rectangle``."""
    high, wide = len(rows), len(columns)
    if high * (high + 1) * wide * (wide + 1) // 4 <= MOST:
        every = Rectangle(rows, columns, fin, fout)
        return every.least, every.cuts(), (1, 1)
    ways = [(1,) if (x == x[::-1, ::-1]).all() else (1, -1) for x in (rows, columns)]
    found = {
        (up, back): Rectangle(rows[::up, ::up], columns[::back, ::back], fin, fout, in_corner=True)
        for up, back in product(*ways)  # what is even is as from the other end
    }
    turn = min(found, key=lambda turn: found[turn].least)
    return found[turn].least, found[turn].cuts(), turn


def peeled(cuts: Sequence[Cut], rows: range, columns: range) -> list[Peel]:
    """Lines of ``cuts`` off these rows and columns."""
    found = list[Peel]()
    for cut in cuts:
        line, across = (rows, columns) if cut.by_row else (columns, rows)
        across = across[::-1] if cut.backwards else across
        some = line[-cut.thickness :][::-1] if cut.at_end else line[: cut.thickness]
        if cut.thickness == 1:
            found.append(Peel("row" if cut.by_row else "column", some[0], across))
        else:
            found += [Peel("column" if cut.by_row else "row", n, some) for n in across]
        line = line[: -cut.thickness] if cut.at_end else line[cut.thickness :]
        rows, columns = (line, columns) if cut.by_row else (rows, line)
    return found


def least(layer: Layer, groups: int = 1, half: int | None = None) -> Peels:
    """Of ``layer``'s pixels, or of those of one of ``groups`` of channels that share nothing;
    ``half``: as if each row of the input were bytes of two elements, the first begun with that
    half (0 or 1), and a byte died with both.

    Exact for the orders that it tries: parts that end with less than they began with come first,
    those with the lowest peaks before others; of those that end with more, the ones that leave
    most of their peak. That this is the best of all orders is not proved; ``python -m
    tests.search.in_place`` counts where it is not.
    """
    each = layer.inputs.each // groups, layer.outputs.each // groups
    return _least(layer.windows, layer.outputs[:2], layer.inputs[:2], *each, half)


@lru_cache(maxsize=512)
def _least(
    windows: tuple[Window, ...], outputs: tuple[int, ...], inputs: tuple[int, ...],
    fin: int, fout: int, half: int | None,
) -> Peels:  # fmt: skip
    """Layers that read alike are alike; networks repeat them."""
    rows, columns = _reads(windows, outputs, inputs)
    if half is not None:
        halves = np.repeat(columns, fin, axis=1)
        halves = np.pad(halves, ((0, 0), (half, (halves.shape[1] + half) % 2)))
        fin, columns = 2, np.asarray(halves.reshape(len(halves), -1, 2).any(axis=2))
    known = dict[tuple[object, ...], tuple[int, list[Cut], tuple[int, int]]]()
    parts = list[tuple[tuple[bool, int], list[Peel]]]()
    for (high, down), (wide, across) in product(_independent(rows), _independent(columns)):
        key = down.shape, across.shape, down.tobytes(), across.tobytes()
        if key not in known:
            known[key] = peeling(down, across, fin, fout)
        peak, cuts, (up, back) = known[key]
        before = down.shape[1] * across.shape[1] * fin
        kept = len(high) * len(wide) * fout - before
        order = peak - before if kept <= 0 else kept - (peak - before)
        parts.append(((kept > 0, order), peeled(cuts, high[::up], wide[::back])))
    parts.sort(key=lambda part: part[0])
    return tuple(peel for _, peels in parts for peel in peels)


def turned_once(layer: Layer) -> int:
    """After how many lines along the shorter side ``single_transpose`` has to turn to need least.

    All are tried, because eq. 4's r* holds only for layout ``contiguous``. Among equals the latest
    is taken: least is transposed, or nothing.
    """
    peaks = turned_after(layer)
    return len(peaks) - 1 - int(np.argmin(peaks[::-1]))


def turned_after(layer: Layer) -> IntArray:
    """[n] the nibbles that ``layer`` needs where it turns after n lines."""
    rows, columns = _reads(layer.windows, layer.outputs[:2], layer.inputs[:2])
    rectangle = Rectangle(rows, columns, layer.inputs.each, layer.outputs.each, in_corner=True)
    spans = np.indices([len(side.first) for side in rectangle.sides], sparse=True)
    by_rows, by_columns = (rectangle.peak(Cut(1, by_row), *spans) for by_row in (True, False))
    first, then = (by_rows, by_columns)
    if layer.outputs.columns > layer.outputs.rows:
        first, then = by_columns.T, by_rows.T
    lines = np.maximum.accumulate(np.append(layer.inputs.total, first[:-1, 0]))
    rest = np.append(then[:-1, :-1].max(axis=1), 0)  # at last nothing is left
    return np.asarray(np.maximum(lines, rest))


def _reads(
    windows: tuple[Window, ...], outputs: tuple[int, ...], inputs: tuple[int, ...]
) -> list[IntArray]:
    """Of rows and of columns (outputs, inputs): whether one reads the other."""
    box, found = tuple((0, n) for n in outputs), list[IntArray]()
    for window, number, extent in zip(windows, outputs, inputs, strict=True):
        reads = np.zeros((number, extent + 2), dtype=bool)  # with padding
        index = np.clip(positions(window, box), -1, extent) + 1
        reads[np.arange(number)[:, None], index] = True
        found.append(reads[:, 1:-1])
    return found


def _independent(reads: IntArray) -> list[tuple[range, IntArray]]:
    """Outputs that share inputs with each other and with no others, evenly spaced, since windows
    are; and what they read of their inputs."""
    group, found = np.arange(len(reads)), list[tuple[range, IntArray]]()
    for readers in reads.T[reads.any(axis=0)]:
        first = np.arange(len(group))
        first[group[readers]] = group[readers].min()
        group = first[group]
    for each in np.unique(group):
        members = np.flatnonzero(group == each)
        step = int(members[1] - members[0]) if len(members) > 1 else 1
        part = reads[members]
        found.append((range(each, int(members[-1]) + 1, step), part[:, part.any(axis=0)]))
    return found
