"""What has to be placed: profiles of cells that live for some steps, and which of them may overlap
where.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

WORD = 8
"""Nibbles of the widest accumulator."""


class Block(NamedTuple):
    """``size`` cells from step ``first`` to step ``last``."""

    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Profile:
    """What keeps its shape: ``parts`` begin at one address, a multiple of ``align``, or
    ``offsets`` above it. No two share a cell while both live."""

    parts: tuple[Block, ...]
    align: int = 1
    offsets: tuple[int, ...] = ()

    @cached_property
    def first(self) -> int:
        return min(part.first for part in self.parts)

    @cached_property
    def last(self) -> int:
        return max(part.last for part in self.parts)

    @cached_property
    def size(self) -> int:
        return max(offset + part.size for offset, part in self.placed)

    @cached_property
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
    change: dict[int, int] = {}

    def during(first: int, last: int, cells: int) -> None:
        change[first] = change.get(first, 0) + cells
        change[last + 1] = change.get(last + 1, 0) - cells

    for profile in profiles:
        for part in profile.parts:
            during(part.first, part.last, part.size)
    shares: dict[tuple[Place, int, int], int] = {}
    for each in overlaps:
        over, under = (profiles[n].parts[part] for n, part in (each.over, each.under))
        first, last = max(over.first, under.first), min(over.last, under.last)
        if first <= last:  # over one of several, whichever saves most
            key = each.over, first, last
            shares[key] = max(shares.get(key, 0), each.shared(profiles))
    for (_, first, last), share in shares.items():
        during(first, last, -share)
    return max(accumulate(change[step] for step in sorted(change)), default=0)


Conflict = tuple[int, int, int]
"""The number of another profile, and the open interval of addresses, counted from its, at which a
profile would meet it."""

Interference = list[list[Conflict]]
"""For each profile its conflicts."""


def interference(profiles: Sequence[Profile], overlaps: Sequence[Overlap] = ()) -> Interference:
    """Return where each profile may not begin beside others that live with it."""
    found: Interference = [[] for _ in profiles]

    def apart(one: Place, other: Place, low: int, high: int) -> None:
        """``one`` less ``other`` is not between ``low`` and ``high``."""
        offset = offsets[other] - offsets[one]
        if one[0] != other[0] and low < high:
            found[one[0]].append((other[0], offset + low, offset + high))
            found[other[0]].append((one[0], -offset - high, -offset - low))

    offsets, parts = dict[Place, int](), list[tuple[int, int, int, Place]]()
    for n, profile in enumerate(profiles):
        for number, (offset, part) in enumerate(profile.placed):
            offsets[n, number] = offset
            parts.append((part.first, part.last, part.size, (n, number)))
    relaxed = {(each.over, each.under) for each in overlaps}
    living: list[tuple[int, int, Place]] = []
    for first, last, size, one in sorted(parts):
        living = [each for each in living if each[0] >= first]
        for _, below, other in living:
            if (one, other) not in relaxed and (other, one) not in relaxed:
                apart(one, other, -size, below)
        living.append((last, size, one))
    for each in overlaps:
        apart(*each)
    return [_merged(conflicts) for conflicts in found]


def _merged(conflicts: list[Conflict]) -> list[Conflict]:
    """With one profile, in as few intervals as possible."""
    found: list[Conflict] = []
    for other, low, high in sorted(conflicts):
        if found and found[-1][0] == other and low < found[-1][2]:
            found[-1] = other, found[-1][1], max(high, found[-1][2])
        else:
            found.append((other, low, high))
    return found


def round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
