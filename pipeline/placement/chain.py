"""Part after part of a long program: few profiles outlive a part, the others lie by themselves.

What outlives a part lies as low or as high as what it was made from leaves it; a bottleneck path
over these places has the smallest arena.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from pipeline.placement.blocks import Profile, round_up
from pipeline.placement.fit import Fitted, Wall, squeaky

TRIES = 5
"""Limits to aim at: from the bound on, each half as far from the best arena so far."""

ROUNDS = 30
"""Of first fits for each rank, of parts of up to ``MANY`` profiles; half as many of larger ones."""

MANY = 600

WAYS = 256
"""To lay what outlives a part, that are tried, and that the next part begins with."""

ENOUGH = 128
"""An arena that is above the bound by less than a part in so many is small enough."""

Places = tuple[tuple[int, int], ...]
"""Numbers of profiles and their addresses."""


def chained(
    profiles: Sequence[Profile], walls: Sequence[Sequence[Wall]], turns: Sequence[int], bound: int
) -> Fitted:
    """The least top found.

    Args:
        turns: the numbers of the last steps of the parts but the last one.
        bound: no arena is smaller.
    """
    align = max((profile.align for profile in profiles), default=1)
    limit, best = round_up(bound, align), None
    for number in range(TRIES):
        found = _Chain(profiles, walls, turns, limit, by_turns=number > 0).place()
        if best is None or found.top < best.top:
            best = found
        if best.top <= max(limit, bound + bound // ENOUGH):
            break
        limit = round_up(min(best.top - align, limit + (best.top - limit) // 2), align)
    assert best is not None
    return best


class _Chain:
    def __init__(
        self,
        profiles: Sequence[Profile],
        walls: Sequence[Sequence[Wall]],
        turns: Sequence[int],
        limit: int,
        by_turns: bool,
    ) -> None:
        self.profiles, self.walls, self.limit = profiles, walls, limit
        self.by_turns = by_turns
        self.end = max((profile.last for profile in profiles), default=0)
        self.parts = list(pairwise((-1, *turns, self.end)))

    def place(self) -> Fitted:
        given = [n for n, profile in enumerate(self.profiles) if profile.first == 0]
        states: dict[Places, Fitted] = {(): Fitted(0, {})}
        for number, (begin, stop) in enumerate(self.parts):
            here = {n for n, p in enumerate(self.profiles) if begin < p.first <= stop}
            kept = [n for n, p in enumerate(self.profiles) if p.first <= stop < p.last]
            ends = [n for n in here if n in kept or self._result(n) or (not number and n in given)]
            inner = sorted(here - set(ends))
            following: dict[Places, Fitted] = {}
            for places, before in states.items():
                for fixed in islice(self._ends(sorted(ends), dict(places)), WAYS):
                    limit = max(self.limit, before.top)
                    rounds = ROUNDS if len(inner) <= MANY else ROUNDS // 2
                    found = squeaky(
                        self.profiles, inner, self.walls, fixed, limit, rounds, self.by_turns
                    )
                    key = tuple((n, found.addresses[n]) for n in kept)
                    top = max(before.top, found.top)
                    if key not in following or top < following[key].top:
                        following[key] = Fitted(top, before.addresses | found.addresses)
            states = dict(sorted(following.items(), key=lambda way: way[1].top)[:WAYS])
        return min(states.values(), key=lambda found: found.top)

    def _result(self, n: int) -> bool:
        """Of the last part, in one piece."""
        profile = self.profiles[n]
        return profile.last == self.end and len(profile.parts) > 1

    def _ends(self, tensors: Sequence[int], fixed: dict[int, int]) -> Iterator[Mapping[int, int]]:
        """Places of what outlives a part; what is given lies at the top."""
        if not tensors:
            yield fixed
            return
        first, *rest = tensors
        lowest, highest = self._lowest(first, fixed), self._highest(first, fixed)
        given = self.profiles[first].first == 0
        for at in sorted({highest} if given else {lowest, highest}):
            if at >= 0:
                yield from self._ends(rest, {**fixed, first: at})

    def _walls(self, n: int, fixed: Mapping[int, int]) -> list[tuple[int, int]]:
        return [(fixed[m] + low, fixed[m] + high) for m, low, high in self.walls[n] if m in fixed]

    def _lowest(self, n: int, fixed: Mapping[int, int]) -> int:
        at, align = 0, self.profiles[n].align
        for low, high in sorted(self._walls(n, fixed)):
            if low < at < high:
                at = round_up(high, align)
        return at

    def _highest(self, n: int, fixed: Mapping[int, int]) -> int:
        """Within the limit; below 0 where there is none."""
        align = self.profiles[n].align
        at = (self.limit - self.profiles[n].size) // align * align
        for low, high in sorted(self._walls(n, fixed), key=lambda wall: -wall[1]):
            if low < at < high:
                at = low // align * align
        return at
