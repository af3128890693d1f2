"""Are conflicting accesses of different tracks ordered by track order and signal → wait?

Vector clocks: track t's component counts its own steps; a wait joins the clock of the signal it
waited for. Two accesses conflict when they touch one granule and one of them writes; they are
ordered when the earlier one's step is in the later one's clock. A plan without races or deadlock is
determinate, so the one order that the verifier walks proves every timing.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.elements import Elements
from pipeline.plan.unrolled import Event
from pipeline.plan.vocabulary import Plan, PlanError, Signal, Wait, value


class Races:
    def __init__(self, plan: Plan, nibbles: dict[str, int]) -> None:
        self.plan = plan
        count = len(plan.tracks)
        self.clock = np.zeros((count, count), dtype=np.int64)
        self.signals: dict[str, list[IntArray]] = defaultdict(list)
        self.signaller: dict[str, int] = {}
        self.granule = {memory.name: 2 * memory.granule_bytes for memory in plan.memories}
        blocks = {name: -(-size // self.granule[name]) for name, size in nibbles.items()}
        self.writes = {name: np.zeros((count, n), dtype=np.int64) for name, n in blocks.items()}
        self.reads = {name: np.zeros((count, n), dtype=np.int64) for name, n in blocks.items()}

    def step(self, event: Event) -> None:
        """Advance the track's clock; pass clocks on through counters."""
        mine = self.clock[event.track]
        step = event.step
        if isinstance(step, Wait):
            needed = value(step.at_least, event.env)
            if needed > 0:
                np.maximum(mine, self.signals[step.counter][needed - 1], out=mine)
        mine[event.track] += 1
        if isinstance(step, Signal):
            if self.signaller.setdefault(step.counter, event.track) != event.track:
                raise PlanError(f"counter {step.counter} is signalled by two tracks")
            self.signals[step.counter].append(mine.copy())

    def touch(self, event: Event, elements: Elements, writes: bool) -> None:
        if len(self.plan.tracks) > 1 and elements.size:
            granule, (low, high) = self.granule[elements.buffer.memory], elements.extent
            blocks: slice | IntArray = slice(low // granule, (high - 1) // granule + 1)
            if (
                not elements.apart or elements.size * elements.buffer.nibbles < high - low
            ):  # with gaps
                blocks = elements.granules(granule)
            self._touch(event, elements.buffer.memory, blocks, writes)

    def reserve(self, event: Event, memory: str) -> None:
        """As if the first granule of ``memory`` were written."""
        if len(self.plan.tracks) > 1:
            self._touch(event, memory, slice(0, 1), True)

    def _touch(self, event: Event, memory: str, blocks: slice | IntArray, writes: bool) -> None:
        mine = self.clock[event.track]
        for other in range(len(self.plan.tracks)):
            if other == event.track:
                continue
            latest = self.writes[memory][other, blocks].max()
            if writes:
                latest = max(latest, self.reads[memory][other, blocks].max())
            if latest > mine[other]:
                raise PlanError(
                    f"race in {memory}: {event} ({self.plan.tracks[event.track].name}) is not "
                    f"ordered after step {latest} of {self.plan.tracks[other].name}"
                )
        (self.writes if writes else self.reads)[memory][event.track, blocks] = mine[event.track]
