"""Are conflicting accesses of different tracks ordered by track order and signal → wait?

Vector clocks: track t's component counts its own steps; a wait joins the clock of the signal it
waited for. Two accesses conflict when they touch one granule and one of them writes; they are
ordered when the earlier one's step is in the later one's clock. A plan without races or deadlock is
determinate, so the one order that the verifier walks proves every timing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.elements import Elements
from pipeline.plan.unrolled import Event
from pipeline.plan.vocabulary import Plan, PlanError, Signal, Wait, value
from pipeline.plan.zones import Zone, Zones

Clock = list[int]

MOST_STEPS = 64
"""Steps that are kept without asking whether they still count."""


@dataclass
class _Touched:
    """The steps by which one track reads, or writes, a buffer's place.

    Attributes:
        latest: the last step that does so.
        steps: those that another track may still have to be ordered after, by what they touch.
    """

    track: int
    writes: bool
    low: int
    high: int
    latest: int = 0
    steps: dict[Hashable, tuple[int, Elements | None]] = field(default_factory=dict)


class Races:
    def __init__(self, plan: Plan, zones: Zones) -> None:
        self.plan, self.zones, count = plan, zones, len(plan.tracks)
        self.clock: list[Clock] = [[0] * count for _ in plan.tracks]
        self.known = [0] * count  # of each track its last step that all others are ordered after
        self.signals: dict[str, list[Clock]] = defaultdict(list)
        self.signaller: dict[str, int] = {}
        self.granule = {memory.name: 2 * memory.granule_bytes for memory in plan.memories}
        self.touched: dict[Zone, dict[tuple[int, bool, int], _Touched]] = defaultdict(dict)

    def step(self, event: Event) -> None:
        """Advance the track's clock; pass clocks on through counters."""
        mine = self.clock[event.track]
        step = event.step
        if isinstance(step, Wait):
            needed = value(step.at_least, event.env)
            if needed > 0:
                mine[:] = map(max, mine, self.signals[step.counter][needed - 1])
                self._learn()
        mine[event.track] += 1
        if isinstance(step, Signal):
            if self.signaller.setdefault(step.counter, event.track) != event.track:
                raise PlanError(f"counter {step.counter} is signalled by two tracks")
            self.signals[step.counter].append([*mine])

    def touch(self, event: Event, elements: Elements, writes: bool) -> None:
        if len(self.plan.tracks) > 1 and elements.size:
            self._touch(event, elements.buffer.memory, elements, writes)

    def reserve(self, event: Event, memory: str) -> None:
        """Act as if the first granule of ``memory`` were written."""
        if len(self.plan.tracks) > 1:
            self._touch(event, memory, None, True)

    def _touch(self, event: Event, memory: str, elements: Elements | None, writes: bool) -> None:
        mine, granule = self.clock[event.track], self.granule[memory]
        place = elements.buffer if elements else None
        every = self.touched[self.zones.of(place) if place else self.zones.at(memory, 0)]
        low, high = place.extent if place else (0, 1)
        low, high = low // granule, -(-high // granule)
        done, known = list[tuple[int, bool, int]](), self.known
        for key, other in every.items():
            if other.latest <= known[other.track]:
                done.append(key)  # all that comes is ordered after it
            elif (
                other.track != event.track
                and other.latest > mine[other.track]
                and (writes or other.writes)
                and other.low < high
                and low < other.high
            ):
                self._ordered(event, memory, elements, other)
        for key in done:
            del every[key]
        if (own := every.get(key := (event.track, writes, id(place)))) is None:
            own = every[key] = _Touched(event.track, writes, low, high)
        own.latest = mine[event.track]
        own.steps[_key(elements)] = own.latest, elements
        if len(own.steps) > MOST_STEPS:
            least = known[event.track]
            own.steps = {key: each for key, each in own.steps.items() if each[0] > least}

    def _learn(self) -> None:
        tracks = range(len(self.clock))
        self.known = [
            min((self.clock[n][track] for n in tracks if n != track), default=0) for track in tracks
        ]

    def _ordered(
        self, event: Event, memory: str, elements: Elements | None, other: _Touched
    ) -> None:
        """
        Raises:
            PlanError: when it touches a granule of a step of the ``other`` track that it isn't
                ordered after.
        """
        known = self.clock[event.track][other.track]
        later = [each for each in other.steps.values() if each[0] > known]
        own, granule = _granules(elements, self.granule[memory]), self.granule[memory]
        meets = [step for step, each in later if np.isin(own, _granules(each, granule)).any()]
        if meets:
            raise PlanError(
                f"race in {memory}: {event} ({self.plan.tracks[event.track].name}) is not "
                f"ordered after step {max(meets)} of {self.plan.tracks[other.track].name}"
            )


def _granules(elements: Elements | None, granule: int) -> IntArray:
    return np.zeros(1, np.int64) if elements is None else elements.granules(granule)


def _key(elements: Elements | None) -> Hashable:
    axes = elements.axes if elements else ()
    return tuple(axis if isinstance(axis, range) else axis.tobytes() for axis in axes)
