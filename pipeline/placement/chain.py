"""Part after part of a long program: few profiles outlive a part, the others lie by themselves.

What outlives a part lies as low or as high as what it was made from leaves it; a bottleneck path
over these places has the smallest arena.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from pipeline.placement.blocks import Interference, Profile, round_up, unpack
from pipeline.placement.fit import RANKS, Fitted, first_fit, squeaky

TRIES = 5
"""Limits to aim at: from the bound on, each half as far from the best arena so far."""

ROUNDS = 30
"""Of first fits for each rank, of parts of up to ``MANY`` profiles; half as many of larger ones."""

MANY = 600

WAYS = 256
"""To lay what outlives a part, that are tried, and that the next part begins with."""

LOOKUPS = 2
"""Of conflicts, for a step of effort; a part may take its share of those that are left."""

EACH = 1000
"""Lookups of each profile, at most."""

ENOUGH = 128
"""An arena that is above the bound by less than a part in so many is small enough."""

ORDERS = RANKS[1], RANKS[0], RANKS[3]


def chained(
    profiles: Sequence[Profile],
    conflicts: Interference,
    turns: Sequence[int],
    bound: int,
    effort: int,
) -> Fitted:
    """The least top found.

    Args:
        turns: the numbers of the last steps of the parts but the last one.
        bound: no arena is smaller.
        effort: see ``place``.
    """
    align = max((profile.align for profile in profiles), default=1)
    limit, best = round_up(bound, align), None
    most = conflicts.work + min(LOOKUPS * effort, EACH * len(profiles))
    for number in range(TRIES):
        found = _Chain(profiles, conflicts, turns, limit, by_turns=number > 0).place(most)
        if best is None or found.top < best.top:
            best = found
        if best.top <= max(limit, bound + bound // ENOUGH) or conflicts.work > most:
            break
        limit = round_up(min(best.top - align, limit + (best.top - limit) // 2), align)
    assert best is not None
    return best


class _Way(NamedTuple):
    """To lay the parts so far: the top, the addresses of what lives in the last one, and the way
    before it."""

    top: int
    addresses: dict[int, int]
    before: "_Way | None"

    def fitted(self) -> Fitted:
        way, addresses = self.before, dict(self.addresses)
        while way:
            addresses |= way.addresses
            way = way.before
        return Fitted(self.top, addresses)


@dataclass(frozen=True)
class _Chain:
    profiles: Sequence[Profile]
    conflicts: Interference
    turns: Sequence[int]
    limit: int
    by_turns: bool

    def place(self, most: int) -> Fitted:
        """The least top found; of each part at least one way is tried, others until there were
        ``most`` lookups."""
        end = max((profile.last for profile in self.profiles), default=0)
        parts: list[list[int]] = [[] for _ in (*self.turns, end)]
        for n, profile in enumerate(self.profiles):
            parts[bisect_left(self.turns, profile.first)].append(n)
        ways, stay = [_Way(0, {}, None)], list[int]()
        for number, (here, stop) in enumerate(zip(parts, (*self.turns, end), strict=True)):
            left = max(0, most - self.conflicts.work)
            until = self.conflicts.work + left // (len(parts) - number)
            # given, outliving the part, or, in one piece, the result of the last one
            ends = {
                n: None
                for n in here
                if (p := self.profiles[n]).first == 0
                or p.last > stop
                or (p.last == end and len(p.parts) > 1)
            }
            inner = [n for n in here if n not in ends]
            rounds = ROUNDS if len(inner) <= MANY else ROUNDS // 2
            after = sorted(n for n in (*stay, *here) if self.profiles[n].last > stop)
            found: dict[tuple[int, ...], _Way] = {}
            for before in ways:
                limit = max(self.limit, before.top)
                kept = {n: before.addresses[n] for n in stay}
                for fixed in islice(self._ends(list(ends), kept), WAYS):
                    if found and self.conflicts.work > until:
                        break
                    top, at = squeaky(
                        self.profiles, self.conflicts, inner, fixed, limit, rounds, ORDERS,
                        self.by_turns,
                    )  # fmt: skip
                    key, top = tuple(at[n] for n in after), max(before.top, top)
                    if key not in found or top < found[key].top:
                        found[key] = _Way(top, at, before)
            ways, stay = sorted(found.values(), key=lambda way: way.top)[:WAYS], after
        return ways[0].fitted()

    def _ends(self, tensors: Sequence[int], fixed: dict[int, int]) -> Iterator[dict[int, int]]:
        """Places of what outlives a part; what is given lies at the top."""
        if not tensors:
            yield fixed
            return
        first, *rest = tensors
        highest = self._highest(first, fixed)
        ways = {highest}
        if self.profiles[first].first:
            ways |= {first_fit(self.profiles, self.conflicts, [first], fixed)[first]}
        for at in sorted(ways):
            if at >= 0:
                yield from self._ends(rest, {**fixed, first: at})

    def _highest(self, n: int, fixed: Mapping[int, int]) -> int:
        """Within the limit; below 0 where there is none."""
        align = self.profiles[n].align
        at = (self.limit - self.profiles[n].size) // align * align
        others, packed = self.conflicts[n]
        ends = zip(others.tolist(), *(each.tolist() for each in unpack(packed)), strict=True)
        taken = [(fixed[m] + low, fixed[m] + high) for m, low, high in ends if m in fixed]
        for low, high in sorted(taken, key=lambda each: -each[1]):
            if low < at < high:
                at = low // align * align
        return at
