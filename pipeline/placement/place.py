"""Addresses for profiles, some of which may overlap.

Where each is a single rectangle and none may overlap another, ``pack`` is exact; else first fits,
those that did not fit under the bound served earlier each time (squeaky wheel optimization: Joslin
& Clements 1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pipeline.placement.blocks import Overlap, Place, Profile
from pipeline.placement.chain import chained
from pipeline.placement.fit import Rank, Wall, first_fit
from pipeline.placement.pack import pack

ROUNDS = 400
EFFORT = 300_000


@dataclass(frozen=True)
class Placed:
    """The address of each profile, the size of the arena, and the most that is held at once."""

    addresses: tuple[int, ...]
    cells: int
    bound: int


RANKS: tuple[Rank, ...] = (
    lambda p: (-p.size, p.first),
    lambda p: (p.first, -p.size),
    lambda p: (-p.area, p.first),
    lambda p: (p.first - p.last, -p.size),
    lambda p: (-p.last, -p.size),
)


def place(
    profiles: Sequence[Profile],
    overlaps: Sequence[Overlap] = (),
    effort: int = EFFORT,
    turns: Sequence[int] | None = None,
) -> Placed:
    """The smallest arena found.

    Args:
        effort: of the exact search, steps of about a microsecond.
        turns: the last steps of parts that few profiles outlive; where they are given, part is
            placed after part.
    """
    bound = load(profiles, overlaps)
    if not overlaps and all(len(profile.parts) == 1 for profile in profiles):
        blocks = [profile.parts[0]._replace(align=profile.align) for profile in profiles]
        packing = pack(blocks, effort)
        return Placed(packing.addresses, packing.cells, bound)
    walls = forbidden(profiles, overlaps)
    if turns is not None:
        found = chained(profiles, walls, turns, bound)
        return Placed(tuple(found.addresses[n] for n in range(len(profiles))), found.top, bound)
    best: Placed | None = None
    for rank in RANKS:
        squeaks = [0] * len(profiles)
        for _ in range(ROUNDS // len(RANKS)):
            served = sorted(range(len(profiles)), key=lambda n: (-squeaks[n], rank(profiles[n])))
            fitted = first_fit(profiles, served, walls, {})
            tops = [fitted[n] + profile.size for n, profile in enumerate(profiles)]
            if best is None or max(tops) < best.cells:
                addresses = tuple(fitted[n] for n in range(len(profiles)))
                best = Placed(addresses, max(tops), bound)
            if best.cells <= bound:
                return best
            for n, top in enumerate(tops):
                squeaks[n] += top > bound
    assert best is not None
    return best


def load(profiles: Sequence[Profile], overlaps: Sequence[Overlap] = ()) -> int:
    """The most cells held at once, what may be shared counted once: no arena is smaller."""
    parts = [part for profile in profiles for part in profile.parts]
    change: dict[int, int] = {}

    def during(first: int, last: int, cells: int) -> None:
        change[first] = change.get(first, 0) + cells
        change[last + 1] = change.get(last + 1, 0) - cells

    for part in parts:
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


def forbidden(profiles: Sequence[Profile], overlaps: Sequence[Overlap]) -> list[list[Wall]]:
    """For each profile what the others forbid."""
    found: list[list[Wall]] = [[] for _ in profiles]

    def wall(one: Place, other: Place, low: int, high: int) -> None:
        """``one`` less ``other`` is not between ``low`` and ``high``."""
        apart = offsets[other] - offsets[one]
        if one[0] != other[0] and low < high:
            found[one[0]].append((other[0], apart + low, apart + high))
            found[other[0]].append((one[0], -apart - high, -apart - low))

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
                wall(one, other, -size, below)
        living.append((last, size, one))
    for each in overlaps:
        wall(*each)
    return [_merged(walls) for walls in found]


def _merged(walls: list[Wall]) -> list[Wall]:
    """What one profile forbids, in as few intervals as possible."""
    found: list[Wall] = []
    for other, low, high in sorted(walls):
        if found and found[-1][0] == other and low < found[-1][2]:
            found[-1] = other, found[-1][1], max(high, found[-1][2])
        else:
            found.append((other, low, high))
    return found
