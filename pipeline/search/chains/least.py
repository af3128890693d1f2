"""The order of a layer's pixels with the least peak that is found: parts that share no input one
after the other, and in each rows and columns off all four sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from pipeline.graph.access import Window
from pipeline.graph.tensor import IntArray
from pipeline.plan.reads import positions
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.rectangle import Cut, Rectangle, peeled, peeling
from pipeline.search.chains.side import Side
from pipeline.search.chains.traversals import Peel, Peels


@dataclass(frozen=True)
class Part:
    """Outputs that share no input with others.

    Attributes:
        rows, columns: evenly spaced.
        peak, kept: nibbles more than before, at most and in the end.
    """

    rows: range
    columns: range
    cuts: Sequence[Cut]
    peak: int
    kept: int

    def peels(self) -> Peels:
        return tuple(
            Peel("row" if by_row else "column", index, along.start, along.stop, along.step)
            for by_row, index, along in peeled(self.cuts, self.rows, self.columns)
        )


def least(layer: Layer, groups: int = 1, half: int | None = None) -> Peels:
    """Of ``layer``'s pixels, or of those of one of ``groups`` of channels that share nothing;
    ``half``: as if each row of the input were bytes of two elements, the first begun with that
    half (0 or 1), and a byte died with both.

    Exact for the orders that it tries: parts that end with less than they began with come first,
    those with the lowest peaks before others; of those that end with more, the ones that leave
    most of their peak. That this is the best of all orders is not proved; ``python -m
    tests.search.in_place`` counts where it is not.
    """
    (operand,) = layer.operands
    sizes = layer.outputs[:2], layer.inputs[:2]
    each = layer.inputs.each // groups, layer.outputs.each // groups
    return _least(operand.windows[:2], *sizes, *each, half)


@lru_cache(maxsize=512)
def _least(
    windows: tuple[Window, ...], outputs: tuple[int, ...], inputs: tuple[int, ...],
    fin: int, fout: int, half: int | None,
) -> Peels:  # fmt: skip
    """Layers that read alike are alike; networks repeat them."""
    reads = _sides(windows, outputs, inputs)
    if half is not None:
        fin, reads[1] = 2, _bytes(np.repeat(reads[1], fin, axis=1), half)
    parts = _parts(fin, fout, *reads)
    first = sorted((part for part in parts if part.kept <= 0), key=lambda part: part.peak)
    last = sorted((p for p in parts if p.kept > 0), key=lambda part: part.kept - part.peak)
    return tuple(peel for part in (*first, *last) for peel in part.peels())


def turned_once(layer: Layer, rows_first: bool) -> IntArray:
    """[n] the nibbles that ``layer`` needs where n rows come first and then columns, or the other
    way round."""
    (operand,) = layer.operands
    sizes = layer.outputs[:2], layer.inputs[:2]
    found = _turned(operand.windows[:2], *sizes, layer.inputs.each, layer.outputs.each, rows_first)
    return np.maximum(found, layer.inputs.total)


@lru_cache(maxsize=512)
def _turned(
    windows: tuple[Window, ...], outputs: tuple[int, ...], inputs: tuple[int, ...],
    fin: int, fout: int, rows_first: bool,
) -> IntArray:  # fmt: skip
    rows, columns = map(Side, _sides(windows, outputs, inputs))
    return Rectangle(rows, columns, fin, fout, in_corner=True).turned_once(rows_first)


def _sides(
    windows: tuple[Window, ...], outputs: tuple[int, ...], inputs: tuple[int, ...]
) -> list[IntArray]:
    """Of rows and of columns (outputs, inputs)."""
    box = (0, outputs[0]), (0, outputs[1])
    return [
        _reads(positions(window, box), *sizes)
        for window, sizes in zip(windows, zip(outputs, inputs, strict=True), strict=True)
    ]


def _reads(index: IntArray, outputs: int, inputs: int) -> IntArray:
    """(outputs, inputs): whether one reads the other."""
    found = np.zeros((outputs, inputs), dtype=bool)
    for output in range(outputs):
        inside = index[output if len(index) > 1 else 0]
        found[output, inside[(inside >= 0) & (inside < inputs)]] = True
    return found


def _bytes(reads: IntArray, half: int) -> IntArray:
    """(outputs, bytes) of (outputs, halves)."""
    padded = np.pad(reads, ((0, 0), (half, (reads.shape[1] + half) % 2)))
    return np.asarray(padded.reshape(len(reads), -1, 2).any(axis=2))


def _parts(fin: int, fout: int, rows: IntArray, columns: IntArray) -> list[Part]:
    known = dict[tuple[bytes, bytes], tuple[list[Cut], int, int]]()
    result = []
    for high, wide in product(_independent(rows), _independent(columns)):
        sides = Side(rows[np.array(high)]), Side(columns[np.array(wide)])
        key = sides[0].count.tobytes(), sides[1].count.tobytes()
        if key not in known:
            cuts, peak = peeling(*sides, fin, fout)
            before = int(sides[0].count[0, -1] * sides[1].count[0, -1]) * fin
            known[key] = cuts, peak - before, len(high) * len(wide) * fout - before
        result.append(Part(high, wide, *known[key]))
    return result


def _independent(reads: IntArray) -> list[range]:
    """Outputs that share inputs with each other and with no others; evenly spaced, since windows
    are. Where all read nothing but padding they are one."""
    group = list(range(len(reads)))
    for readers in reads.T:
        first, *others = np.flatnonzero(readers) if readers.any() else (0,)
        for other in others:
            low, high = sorted((group[first], group[other]))
            group = [low if each == high else each for each in group]
    members = [np.flatnonzero(np.array(group) == each) for each in dict.fromkeys(group)]
    return [
        range(int(m[0]), int(m[-1]) + 1, int(m[1] - m[0]) if len(m) > 1 else 1) for m in members
    ]
