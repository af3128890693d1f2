"""All orders of a segment's rows, the most promising first, as far as time allows.

A state is the set of units that are done; of all ways from none to all the one whose worst moment
is the least (a bottleneck shortest path). A unit that frees as much as it takes, and needs no more
meanwhile than was held before, is done at once: what it frees it would free later, too, and all
that is done before it would have more room, so no order is lost.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pipeline.search.joint.units import Units


class _State(NamedTuple):
    """
    Attributes:
        worst: cells at the worst moment so far.
        left: how many units are; of equally good states the furthest goes on.
        done, ready: masks of units.
        live: cells between two units.
        before: what was done a unit earlier.
    """

    worst: int
    left: int
    done: int
    ready: int
    live: int
    before: int


class _Segment:
    """Units by their place in a known order; masks of these."""

    def __init__(
        self, units: Units, order: Sequence[int], source: Collection[str], target: Collection[str]
    ) -> None:
        self.units, self.sizes = [units.units[number] for number in order], units.sizes
        places = {number: place for place, number in enumerate(order)}
        self.all = (1 << len(order)) - 1
        self.before = [0] * len(order)
        self.after: list[list[int]] = [[] for _ in order]
        self.readers: dict[int, int] = {}
        self.writers: dict[int, int] = {}
        for place, unit in enumerate(self.units):
            for earlier in {places[each] for each in unit.after if each in places}:
                self.before[place] |= 1 << earlier
                self.after[earlier].append(place)
            for block, _ in unit.reads:
                self.readers[block] = self.readers.get(block, 0) | 1 << place
            self.writers[unit.writes] = self.writers.get(unit.writes, 0) | 1 << place
        for name in target:  # read by a unit that is never done
            self.readers |= dict.fromkeys(units.blocks[name], self.all + 1)
        here = units.held(source)
        ready = sum(1 << place for place, before in enumerate(self.before) if not before)
        worst = sum(self.sizes[block] for block in here)
        live = sum(self.sizes[block] for block in here if block in self.readers)
        self.start = _State(worst, len(order), 0, ready, live, 0)

    def following(self, state: _State, below: int) -> list[_State]:
        """What one unit leads to; where there is a free one, that alone."""
        worst, left, done, ready, live, _ = state
        found, rest = list[_State](), ready
        while rest:
            bit = rest & -rest
            rest -= bit
            place = bit.bit_length() - 1
            unit, now = self.units[place], done | bit
            made = died = saved = 0
            if not self.writers[unit.writes] & done:
                made = self.sizes[unit.writes]
                died = 0 if unit.writes in self.readers else made
            for block, share in unit.reads:
                if not self.readers[block] & ~now:
                    died += self.sizes[block]
                    saved = max(saved, share)
            most = max(worst, live + made - saved + unit.within)
            if most >= below:
                continue
            freed = sum(1 << each for each in self.after[place] if not self.before[each] & ~now)
            then = live + made - died
            way = _State(most, left - 1, now, ready - bit | freed, then, done)
            if most == worst and then <= live:
                return [way]
            found.append(way)
        return found


def better(
    units: Units,
    order: Sequence[int],
    source: Collection[str],
    target: Collection[str],
    below: int,
    states: int,
) -> list[int] | None:
    """The units of ``order`` in one that holds the least, if that is less than ``below`` cells;
    None where there is none, or none was found among so many ``states``."""
    segment = _Segment(units, order, source, target)
    queue, seen = [segment.start], dict[int, int]()
    while queue and len(seen) < states:
        state = heapq.heappop(queue)
        if state.done in seen:
            continue
        seen[state.done] = state.before
        if not state.left:
            return [order[place] for place in _places(state.done, seen)]
        for way in segment.following(state, below):
            heapq.heappush(queue, way)
    return None


def _places(done: int, before: Mapping[int, int]) -> list[int]:
    """One by one, from none to all that are ``done``."""
    found = []
    while done:
        found.append((done ^ before[done]).bit_length() - 1)
        done = before[done]
    return found[::-1]
