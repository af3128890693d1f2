"""Blocks to place: profiles of cells over their live intervals, and which of them may overlap
where."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.tensor import IntArray

WORD = 8
"""Nibbles of the widest accumulator."""


class Block(NamedTuple):
    """``size`` cells from step ``first`` to step ``last``."""

    size: int
    first: int
    last: int


class Profile(NamedTuple):
    """Blocks that move together: ``parts`` begin at one address, a multiple of ``align``, or
    ``offsets`` above it, and end ``size`` above it at most. No two share a cell while both live."""

    parts: tuple[Block, ...]
    align: int = 1
    offsets: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return max(offset + part.size for offset, part in self.placed)

    @property
    def placed(self) -> list[tuple[int, Block]]:
        """Each part with its offset."""
        offsets = self.offsets or (0,) * len(self.parts)
        return list(zip(offsets, self.parts, strict=True))


def put_over(parts: list[tuple[int, Block]], offset: int, block: Block) -> int:
    """Add ``block``, ``offset`` above the address of ``parts``, over what dies there as it begins:
    whichever of two is larger has the cells at the step that both need. Return the number of a part
    that begins where it does."""
    end = offset + block.size
    for number, (at, part) in enumerate(parts):
        stop = at + part.size
        if at >= end or offset >= stop or part.last < block.first - 1:
            continue
        if (at, stop) == (offset, end):
            parts[number] = at, part._replace(last=max(part.last, block.last))
            return number
        if part.last < block.first:
            continue
        if offset <= at and stop <= end:
            parts[number] = at, part._replace(last=block.first - 1)
        elif part.last < block.last:
            block = block._replace(first=part.last + 1)
        elif at == offset:
            return number
    parts.append((offset, block))
    return len(parts) - 1


class Profiles:
    """Profiles as columns of numbers: of a large network there are a hundred thousand.

    Attributes:
        cells, begin, end, offset, owner: of each part its size, first and last step, offset, and
            the number of its profile.
        begins: the number of each profile's first part, and that of all parts.
        size, align, first, last, area: of each profile; ``area``: cells times steps.
    """

    def __init__(self, profiles: Iterable[Profile]) -> None:
        begins, size, align = array("q", [0]), array("q"), array("q")

        def parts() -> Iterator[tuple[int, ...]]:
            for n, each in enumerate(profiles):
                begins.append(begins[-1] + len(each.parts))
                size.append(each.size)
                align.append(each.align)
                yield from ((*part, offset, n) for offset, part in each.placed)

        table = np.fromiter(parts(), np.dtype((np.int64, 5)))
        self.cells, self.begin, self.end, self.offset, self.owner = table.T
        self.begins, self.size, self.align = map(np.array, (begins, size, align))
        self.first = np.minimum.reduceat(self.begin, self.begins[:-1])
        self.last = np.maximum.reduceat(self.end, self.begins[:-1])
        areas = self.cells * (self.end - self.begin + 1)
        self.area = np.add.reduceat(areas, self.begins[:-1])

    def __len__(self) -> int:
        return len(self.size)


Overlaps = Sequence[tuple[int, int, int, int]] | NDArray[np.int32]
"""Rows ``over, under, low, high``, (overlaps, 4): part ``over`` may share cells with part ``under``
while both live: anywhere but where ``low`` < its address - the other's < ``high``. Parts are
numbered through all profiles.

An output that is written forwards over a dying input may begin ``gap`` cells after it, or lower:
low = gap, high = the input's size.
"""


def load(of: Profiles, overlaps: Overlaps = ()) -> int:
    """Return the most cells held at once, what may be shared counted once: no arena is smaller."""
    first, last, cells = of.begin, of.end, of.cells
    if len(overlaps):
        saved = _saved(of, *_columns(overlaps))
        first, last, cells = np.concatenate([[first, last, cells], saved], axis=1)
    change = np.zeros(last.max(initial=0) + 2, dtype=np.int64)
    np.add.at(change, first, cells)
    np.subtract.at(change, last + 1, cells)
    return int(change.cumsum().max())


def _saved(
    of: Profiles, over: IntArray, under: IntArray, low: IntArray, high: IntArray
) -> IntArray:
    """Return from when to when, and by how many cells less than none, what lies over another saves
    its own: (3, overlaps); over one of several, whichever saves most."""
    first = np.maximum(of.begin[over], of.begin[under])
    last = np.minimum(of.end[over], of.end[under])
    above, below = of.cells[over], of.cells[under]
    # one lies in the other from ``least`` to ``most``; as near to that as is allowed
    least, most = np.minimum(0, below - above), np.maximum(0, below - above)
    apart = np.stack([np.minimum(low, most), np.maximum(high, least)])
    together = (np.maximum(apart + above, below) - np.minimum(apart, 0)).min(axis=0)
    less = np.minimum(0, together - above - below)
    every = np.stack([over, first, last, less])[:, np.lexsort((less, last, first, over))]
    best = np.append(True, (every[:3, 1:] != every[:3, :-1]).any(axis=0))
    return every[1:, best & (every[1] <= every[2])]


def _columns(overlaps: Overlaps) -> NDArray[np.int32]:
    return np.asarray(overlaps, dtype=np.int32).reshape(-1, 4).T


KNOWN = 1 << 18
"""Conflicts of profiles of one part that are kept, of 12 bytes each; others are worked out each
time."""

LONG = 512
"""Count a look through so many conflicts as another lookup."""

WORKED_OUT = 8
"""Count working them out as so many lookups of those that are kept."""


class Conflicts(NamedTuple):
    """The ``others`` that a profile meets where its address less theirs is between ``lows`` and
    ``highs``; each (conflicts)."""

    others: IntArray
    lows: IntArray
    highs: IntArray

    def beside(self, at: IntArray) -> tuple[IntArray, IntArray]:
        """Between which addresses the profile meets those that lie ``at`` theirs."""
        base = at[self.others]
        return self.lows + base, self.highs + base


APART = 1 << 33
"""No interval is as long."""


class Interference:
    """Address ranges where each profile may not begin, given others that live with it.

    Attributes:
        work: lookups so far, of a few microseconds each.
    """

    work: int = 0

    def __init__(self, of: Profiles, overlaps: Overlaps = ()) -> None:
        columns = of.begin, of.end, of.cells, of.offset, of.owner
        order = np.lexsort(columns[::-1])
        self.first, self.last, self.size, self.offset, self.owner = (
            column.astype(np.int32)[order] for column in columns
        )
        self.latest = np.maximum.accumulate(self.last)
        self.profiles, self.several = of, np.diff(of.begins) > 1
        self.rows = order.argsort().astype(np.int32)  # part by part
        over, under, low, high = _columns(overlaps)
        offset = (of.offset[under] - of.offset[over]).astype(np.int32)
        self.relaxed = _sorted(self.rows[[[over, under], [under, over]]])
        there = [of.owner[over], of.owner[under], offset + low, offset + high]
        back = [there[1], there[0], -there[3], -there[2]]
        told = _sorted(np.array([there, back], np.int32))
        self.told = told[(told[:, 0] != told[:, 1]) & (told[:, 2] < told[:, 3])]
        self.known: dict[int, Conflicts] = {}
        self.kept = 0

    def __getitem__(self, n: int) -> Conflicts:
        if (known := self.known.get(n)) is not None:
            self.work += max(1, len(known.others) // LONG)
            return known
        self.work += WORKED_OUT
        several = self.several[n]
        found = _of(self.told, n)
        for row in self.rows[slice(*self.profiles.begins[n : n + 2])]:
            found = np.concatenate([found, self._of_part(row)])
            if several:
                found = _merged(found)
        if not several and (some := self.several[found[:, 0]]).any():
            found = np.concatenate([found[~some], _merged(found[some])])
        conflicts = Conflicts(*found.T.astype(np.int32))
        self.kept += 0 if several else len(found)
        if several or self.kept <= KNOWN:
            self.known[n] = conflicts
        return conflicts

    def met(self, at: IntArray) -> bool:
        """Check whether any profile conflicts with another, each ``at`` its address."""
        for n, address in enumerate(at):
            lows, highs = self[n].beside(at)
            if ((lows < address) & (address < highs)).any():
                return True
        return False

    def _of_part(self, row: int) -> IntArray:
        """(conflicts, 3)"""
        ended = np.searchsorted(self.latest, self.first[row], "left")
        begun = np.searchsorted(self.first, self.last[row], "right")
        meets = self.last[ended:begun] >= self.first[row]
        meets &= self.owner[ended:begun] != self.owner[row]
        relaxed = _of(self.relaxed, row)[:, 0]
        meets[relaxed[(ended <= relaxed) & (relaxed < begun)] - ended] = False
        others = ended + np.flatnonzero(meets)
        offset = self.offset[others] - self.offset[row]
        lows, highs = offset - self.size[row], offset + self.size[others]
        return np.column_stack([self.owner[others], lows, highs])


def _of(rows: NDArray[np.int32], number: int) -> IntArray:
    """Return what stands beside ``number`` in sorted ``rows``."""
    found = rows[slice(*np.searchsorted(rows[:, 0], (number, number + 1))), 1:]
    return found.astype(np.int64)


def _sorted(both: NDArray[np.int32]) -> NDArray[np.int32]:
    """Rows of ``both`` ways, (2, columns, rows), by their first numbers: (2 * rows, columns)."""
    rows = both.transpose(0, 2, 1).reshape(-1, both.shape[1])
    return rows[rows[:, 0].argsort(kind="stable")]


def _merged(conflicts: IntArray) -> IntArray:
    """Join with each other profile in as few intervals as possible, (conflicts, 3)."""
    apart = conflicts[:, 0] * APART  # no interval reaches into those of the next profile
    order = (lows := conflicts[:, 1] + apart).argsort(kind="stable")
    lows, tops = lows[order], np.maximum.accumulate((conflicts[:, 2] + apart)[order])
    begins = np.flatnonzero(np.append(True, lows[1:] >= tops[:-1])[: len(lows)])
    ends = np.append(begins[1:], len(lows))[: len(begins)] - 1
    first = conflicts[order[begins]]
    return np.column_stack([first[:, :2], tops[ends] - first[:, 0] * APART])


def round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
