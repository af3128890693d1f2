"""Blocks to place: profiles of cells over their live intervals, and which of them may overlap
where."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from pipeline.graph.tensor import IntArray

WORD = 8
"""Nibbles of the widest accumulator."""


class Block(NamedTuple):
    """``size`` cells from step ``first`` to step ``last``."""

    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Blocks that move together: ``parts`` begin at one address, a multiple of ``align``, or
    ``offsets`` above it, and end ``size`` above it at most. No two share a cell while both live."""

    parts: tuple[Block, ...]
    align: int = 1
    offsets: tuple[int, ...] = ()
    size: int = field(init=False)

    def __post_init__(self) -> None:
        size = max(offset + part.size for offset, part in self.placed)
        object.__setattr__(self, "size", size)

    @property
    def first(self) -> int:
        return min(part.first for part in self.parts)

    @property
    def last(self) -> int:
        return max(part.last for part in self.parts)

    @property
    def area(self) -> int:
        return sum(part.size * (part.last - part.first + 1) for part in self.parts)

    @property
    def placed(self) -> list[tuple[int, Block]]:
        """Each part with its offset."""
        offsets = self.offsets or (0,) * len(self.parts)
        return list(zip(offsets, self.parts, strict=True))


Place = tuple[int, int]
"""The number of a profile, and of a part of it."""


class Overlap(NamedTuple):
    """Part ``over`` may share cells with part ``under`` while both live: anywhere but where
    ``low`` < its address - the other's < ``high``.

    An output that is written forwards over a dying input may begin ``gap`` cells after it, or
    lower: low = gap, high = the input's size.
    """

    over: Place
    under: Place
    low: int
    high: int

    def shared(self, profiles: Sequence[Profile]) -> int:
        """The most cells that both can have in common."""
        over, under = (profiles[n].parts[part].size for n, part in (self.over, self.under))
        # one lies in the other from ``least`` to ``most``; as near to that as is allowed
        least, most = sorted((0, under - over))
        apart = min(self.low, most), max(self.high, least)
        return max(0, over + under - min(max(d + over, under) - min(d, 0) for d in apart))


def load(profiles: Sequence[Profile], overlaps: Sequence[Overlap] = ()) -> int:
    """The most cells held at once, what may be shared counted once: no arena is smaller."""
    parts = ((part.first, part.last, part.size) for each in profiles for part in each.parts)
    shares: dict[tuple[Place, int, int], int] = {}
    for each in overlaps:
        over, under = (profiles[n].parts[part] for n, part in (each.over, each.under))
        first, last = max(over.first, under.first), min(over.last, under.last)
        if first <= last:  # over one of several, whichever saves most
            key = each.over, first, last
            shares[key] = max(shares.get(key, 0), each.shared(profiles))
    saved = ((first, last, -share) for (_, first, last), share in shares.items())
    change = Counter[int]()
    for first, last, cells in chain(parts, saved):
        change[first] += cells
        change[last + 1] -= cells
    return max(accumulate(change[step] for step in sorted(change)), default=0)


KNOWN = 1 << 18
"""Conflicts of profiles of one part that are kept, of 12 bytes each; others are worked out each
time."""

LONG = 2048
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

    def __init__(self, profiles: Sequence[Profile], overlaps: Sequence[Overlap] = ()) -> None:
        parts = (
            (part.first, part.last, part.size, offset, n)
            for n, profile in enumerate(profiles)
            for offset, part in profile.placed
        )
        table = np.fromiter(parts, np.dtype((np.int64, 5))).T
        order = np.lexsort(table[::-1])
        self.first, self.last, self.size, self.offset, self.owner = table[:, order]
        self.latest = np.maximum.accumulate(self.last)
        counts = [len(profile.parts) for profile in profiles]
        self.several, self.begins = np.array(counts) > 1, np.cumsum([0, *counts])
        self.rows = order.argsort()  # profile by profile
        pairs = ((*over, *under, low, high) for over, under, low, high in overlaps)
        over, part, under, other, low, high = np.fromiter(pairs, np.dtype((np.int64, 6))).T
        one, two = self.rows[self.begins[over] + part], self.rows[self.begins[under] + other]
        offset = self.offset[two] - self.offset[one]
        there = np.column_stack([one, two, over, under, offset + low, offset + high])
        back = np.column_stack([two, one, under, over, -offset - high, -offset - low])
        both = np.concatenate([there, back])
        self.relaxed = both[both[:, 0].argsort(kind="stable"), :2]
        told = both[(both[:, 2] != both[:, 3]) & (both[:, 4] < both[:, 5]), 2:]
        self.told = told[told[:, 0].argsort(kind="stable")]
        self.known: dict[int, Conflicts] = {}
        self.kept = 0

    def __getitem__(self, n: int) -> Conflicts:
        if (known := self.known.get(n)) is not None:
            self.work += 1 + len(known.others) // LONG
            return known
        self.work += WORKED_OUT
        several = self.several[n]
        found = _of(self.told, n)
        for row in self.rows[self.begins[n] : self.begins[n + 1]]:
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

    def met(self, addresses: Mapping[int, int]) -> bool:
        """Check whether any profile at its address in ``addresses`` conflicts with another."""
        at = np.array([addresses[n] for n in range(len(addresses))])
        for n, address in addresses.items():
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


def _of(rows: IntArray, number: int) -> IntArray:
    """Return what stands beside ``number`` in sorted ``rows``."""
    return rows[slice(*np.searchsorted(rows[:, 0], (number, number + 1))), 1:]


def _merged(conflicts: IntArray) -> IntArray:
    """With each other profile in as few intervals as possible, (conflicts, 3)."""
    others, lows, _ = conflicts.T
    others, lows, highs = conflicts[np.lexsort((lows, others))].T
    apart = others * APART  # no interval reaches into those of the next profile
    tops = np.maximum.accumulate(highs + apart)
    begins = np.flatnonzero(np.append(True, lows[1:] + apart[1:] >= tops[:-1])[: len(lows)])
    ends = np.append(begins[1:], len(lows))[: len(begins)] - 1
    return np.column_stack([others[begins], lows[begins], (tops - apart)[ends]])


def round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
