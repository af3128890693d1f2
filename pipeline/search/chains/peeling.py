"""The order of a layer's pixels with the least peak that is found: parts that share no input one
after the other, and of each rows and columns from one of its corners on, a few at a time, each in
either direction, until nothing is left."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from pipeline.graph.access import Window
from pipeline.graph.tensor import IntArray
from pipeline.search.chains.traversals import Peel, Peels
from pipeline.search.view.pixels import Layer, along

NEVER = 1 << 40
THICKEST = 5


class Cut(NamedTuple):
    """The first ``thickness`` rows, or columns, of what is left, ``backwards`` from their last
    output on. Several go together: the first outputs of each, then the second."""

    thickness: int
    by_row: bool
    backwards: bool = False

    @property
    def rows(self) -> int:
        """Count the rows that are gone with it."""
        return self.thickness if self.by_row else 0

    @property
    def columns(self) -> int:
        return self.thickness - self.rows


CUTS = [Cut(*each) for each in product(range(1, THICKEST + 1), (True, False), (False, True))]


class Rectangle:
    """Outputs that are cut off from the top left, some lines at a time, until nothing is left."""

    def __init__(self, rows: IntArray, columns: IntArray, fin: int, fout: int) -> None:
        """``rows``, ``columns``: (outputs, inputs), what is read along either axis; the inputs of
        some outputs are the product of the two. ``fin``, ``fout``: nibbles of an input pixel and of
        an output pixel."""
        self.size = len(rows), len(columns)
        self.counts = _counts(rows), _counts(columns)
        self.fin, self.fout = fin, fout

    def best(self) -> tuple[int, list[Cut]]:
        """Return the least peak, of what is live once an output is written, of what they read and
        made; and its cuts, of several as good the first of ``CUTS``. Found for what is left once so
        many rows and columns are gone, with the most gone first, since a cut leaves less."""
        high, wide = self.size
        best = np.full((high + THICKEST, wide + THICKEST), NEVER)
        best[high, : wide + 1] = best[: high + 1, wide] = 0
        first, peaks = np.zeros_like(best), [self.peaks(cut) for cut in CUTS]
        for gone in reversed(range(high + wide - 1)):
            row = np.arange(max(0, gone - wide + 1), min(high, gone + 1))
            some = row, gone - row
            after = [
                np.maximum(peak[some], best[row + cut.rows, gone - row + cut.columns])
                for peak, cut in zip(peaks, CUTS, strict=True)
            ]
            best[some], first[some] = np.min(after, axis=0), np.argmin(after, axis=0)
        cuts, at = list[Cut](), (0, 0)
        while at[0] < high and at[1] < wide:
            cuts.append(CUTS[first[at]])
            at = at[0] + cuts[-1].rows, at[1] + cuts[-1].columns
        return int(best[0, 0]), cuts

    def peaks(self, cut: Cut) -> IntArray:
        """[row, column] the most that is live while ``cut`` comes off what is left once so many are
        gone, (rows, columns)."""
        (high, wide), (across, along) = self.size, self.counts[:: 1 if cut.by_row else -1]
        there = np.pad(across[:-1, -1], (0, THICKEST))  # inputs of what is left, none beyond
        lines = np.stack([there[n : n + len(across) - 1] for n in range(cut.thickness + 1)], axis=1)
        kinds, kind = np.unique(lines[:, :1] - lines[:, 1:], axis=0, return_inverse=True)
        rises = self._rises(kinds, along, cut)[kind.reshape(-1)]
        live = rises + self.fin * np.multiply.outer(lines[:, -1], along[:-1, -1])
        left = np.multiply.outer(np.arange(high, 0, -1), np.arange(wide, 0, -1))
        return np.asarray((live if cut.by_row else live.T) + self.fout * (high * wide - left))

    def _rises(self, freed: IntArray, count: IntArray, cut: Cut) -> IntArray:
        """[kind, a] nibbles that lines of outputs from a on hold at most and write while they are
        computed; ``freed``: (kinds, lines), inputs that nothing reads any more once so many are
        off. With p outputs of each line made, what is live has grown by those and shrunk by the
        inputs of which only the others were left."""
        stop = len(count) - 1
        first, made = np.indices((stop, stop + 1), sparse=True)
        forwards = np.minimum(first + made, stop), stop
        left = count[(first, np.maximum(stop - made, first)) if cut.backwards else forwards]
        before, after = left[:, :-1], left[:, 1:]
        live = np.full((len(freed), stop, stop), -NEVER)
        for n, off in enumerate(freed.T[..., None, None]):
            now = self.fin * ((freed[:, -1, None, None] - off) * before + off * after)
            np.maximum(live, now + self.fout * (n + 1), out=live)
        live += cut.thickness * self.fout * made[:, :-1]
        live[:, first + made[:, :-1] >= stop] = -NEVER
        return np.asarray(live.max(axis=2))


def _counts(reads: IntArray) -> IntArray:
    """[a, b] inputs that outputs a to b (exclusive) read, (outputs + 1, outputs + 1)."""
    found = np.zeros((len(reads) + 1,) * 2, dtype=np.int64)
    for first in range(len(reads)):
        read = np.logical_or.accumulate(reads[first:])
        found[first, first + 1 :] = np.count_nonzero(read, axis=1)
    return found


def peeling(
    rows: IntArray, columns: IntArray, fin: int, fout: int
) -> tuple[int, list[Cut], tuple[int, int]]:
    """Return the least peak that is found and its cuts; -1 where they are of rows, or of columns,
    in reverse, else 1. See ``Rectangle``."""
    ways = [(1,) if (x == x[::-1, ::-1]).all() else (1, -1) for x in (rows, columns)]
    found = {
        (up, back): Rectangle(rows[::up, ::up], columns[::back, ::back], fin, fout).best()
        for up, back in product(*ways)  # what is even is as from the other end
    }
    turn = min(found, key=lambda turn: found[turn][0])
    return *found[turn], turn


def peeled(cuts: Sequence[Cut], rows: range, columns: range) -> list[Peel]:
    """Lines of ``cuts`` off these rows and columns."""
    found = list[Peel]()
    for cut in cuts:
        line, across = (rows, columns) if cut.by_row else (columns, rows)
        across, some = across[::-1] if cut.backwards else across, line[: cut.thickness]
        if cut.thickness == 1:
            found.append(Peel("row" if cut.by_row else "column", some[0], across))
        else:
            found += [Peel("column" if cut.by_row else "row", n, some) for n in across]
        line = line[cut.thickness :]
        rows, columns = (line, columns) if cut.by_row else (rows, line)
    return found


def least(layer: Layer, groups: int = 1, half: int | None = None) -> Peels:
    """Peel ``layer``'s pixels, or those of one of ``groups`` of channels that share nothing;
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
    rows, columns = map(along, windows, outputs, inputs)
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


def turned_after(layer: Layer) -> IntArray:
    """[n] the nibbles that ``layer`` needs where it turns after n lines."""
    rows, columns = map(along, layer.windows, layer.outputs, layer.inputs)
    rectangle = Rectangle(rows, columns, layer.inputs.each, layer.outputs.each)
    first, then = (rectangle.peaks(Cut(1, by_row)) for by_row in (True, False))
    if layer.outputs.columns > layer.outputs.rows:
        first, then = then.T, first.T
    lines = np.maximum.accumulate(np.append(layer.inputs.total, first[:, 0]))
    rest = np.append(then.max(axis=1), 0)  # at last nothing is left
    return np.asarray(np.maximum(lines, rest))


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
