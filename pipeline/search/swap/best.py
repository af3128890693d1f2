"""The scheduler ``best``: segments found by search, their transfers by list scheduling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.plan.tried import Tried
from pipeline.schedules.lower import Notes
from pipeline.schedules.swapped import Swapped
from pipeline.search.swap.build import Builder, layout
from pipeline.search.swap.layers import Proposal, TiledLayer, homes
from pipeline.search.swap.lower_bounds import lower_bound
from pipeline.search.swap.queues import QUEUES, Scheduled, frozen, schedule
from pipeline.search.swap.resident import (
    NEVER,
    choices,
    maps_stay_bytes,
    staying,
    weights_stay_bytes,
)
from pipeline.search.swap.search import Search, Share, least_bytes, tail
from pipeline.search.swap.segments import GRAIN, Place, Segment

SHARES = (
    *(Share(lead) for lead in (1.0, 0.35, 0.1, 0.03)),
    Share(1.0, 0.1, 0.0), Share(0.35, 0.25, 0.0), Share(0.35, 0.1, 1.0),
    Share(0.35, 0.1, 1.0, sparing=True),
)  # fmt: skip
"""One search each."""
TASKS = 60_000
"""Of all schedules with other weight tiles that are tried."""
PAIRS = 12
"""Of the tiles of two segments, those that are tried."""

SMALLER = 0.6
"""Of SRAM, that plans of one frame are tried in, too."""

STAYS = ("maps_stay_bytes", "weights_stay_bytes")
"""Notes: SRAM from which on feature maps, or weights, are not swapped any more."""
SPARED = 0.005
"""Of the price, that a plan may cost more that writes less to the card."""


Phase = tuple[list[Segment], int]
"""Segments, and the bytes of SRAM that they may take."""
Changes = Callable[[Search, list[Segment], int], Iterator[list[Segment]]]
"""Of segments, what else the last ones up to one of them may be."""


class Found(NamedTuple):
    """``price``: what is made small, in microseconds; ``io_us``: of reading and writing."""

    price: float
    io_us: float
    scheduled: Scheduled
    builder: Builder
    parts: list[Phase]

    @property
    def written_bytes(self) -> int:
        """To the card, for each frame."""
        return sum(each.written_bytes for segments, _ in self.parts for each in segments)

    def tried(self, frames: int) -> Tried:
        """Of an inference."""
        tasks = self.builder.queues.tasks
        read_us, write_us = (sum(task.us for task in tasks[name]) for name in ("read", "write"))
        whole_us = self.scheduled.makespan_us
        return Tried(whole_us / frames, read_us / frames, write_us / frames, self.written_bytes)

    def fewer(self, other: Found) -> bool:
        """Cheaper, or as good with less for the card to do."""
        near = self.price <= (1 + SPARED) * other.price and self.io_us < other.io_us
        return near or self.price < other.price


@dataclass(frozen=True)
class Aim:
    """
    Attributes:
        io: how many microseconds one of the card's counts, besides those of the makespan.
        flash_bytes: that weights may stay in; 0: all of them lie on the card.
    """

    io: float = 0.0
    flash_bytes: int = 0


LATENCY = Aim()


def search(
    graph: Graph,
    chain: tuple[TiledLayer, ...],
    sram_bytes: int,
    frames: int,
    rates: Rates,
    line_bytes: int = 1,
    aim: Aim = LATENCY,
) -> Proposal:
    """Where nothing fits, what does in as much memory as every layer needs: its size is the
    answer.

    Args:
        line_bytes: of a data cache; no two things share one.
    """
    grain = max(GRAIN, line_bytes)
    sram = sram_bytes // grain * grain
    tries = Tries(graph, chain, sram, frames, rates, grain, aim)
    found = tries.found()
    if not found:
        sram = max(sram, least_bytes(chain, grain, tries.search.copies[0]))
        tries = replace(tries, sram=sram)
        found = tries.found()
    segments = [each for part, _ in found[0].parts for each in part]
    for weights in choices(segments, rates, aim.flash_bytes):
        others = replace(tries, layers=staying(chain, weights)).found()
        if others and others[0].fewer(found[0]):
            tries, found = replace(tries, layers=staying(chain, weights)), others
    best = tries.retiled(found[0])
    on_chip = {name for layer in tries.layers if not layer.weight for name in layer.fixed}
    in_flash = sum(layer.weight_bytes for layer in chain if layer.weight in on_chip)
    windows = tuple(best.builder.windows.values())
    jobs = frozen(best.builder.queues, best.scheduled.io)
    region = Swapped(*homes(tries.layers), windows, *jobs)
    bound = lower_bound(chain, graph, sram, rates, frames, aim.flash_bytes)
    plain = Search(chain, sram, rates, grain)
    least = (maps_stay_bytes(plain), weights_stay_bytes(plain, aim.flash_bytes))
    notes: Notes = (
        ("scheduler", "best"),
        ("makespan_us", best.scheduled.makespan_us),
        ("bound_us", bound.us),
        ("bound_by", bound.by),
        ("bound_overhead_pct", bound.overhead_pct),
        ("weights_in_flash_bytes", in_flash),
        *((key, size) for key, size in zip(STAYS, least, strict=True) if size < NEVER),
        ("trade", ";".join(str(each.tried(frames)) for each in (best, *found))),
    )
    return Proposal(region, sram, notes)


@dataclass(frozen=True)
class Tries:
    """Schedules of some layers in ``sram`` bytes; everything takes multiples of ``grain``."""

    graph: Graph
    layers: tuple[TiledLayer, ...]
    sram: int
    frames: int
    rates: Rates
    grain: int = GRAIN
    aim: Aim = LATENCY

    @cached_property
    def search(self) -> Search:
        return Search(self.layers, self.sram, self.rates, self.grain)

    def found(self) -> list[Found]:
        """One for each way to weigh things, the cheapest first, but for one as good that writes
        less to the card; none where nothing fits."""
        found, seen = list[Found](), list[list[Phase]]()
        shares = SHARES if self.frames == 1 else SHARES[:3:2]
        saving = (Share(1.0, self.aim.io, 1.0), Share(0.35, self.aim.io, 0.0))
        shares = (*shares, *saving) if self.aim.io else shares
        for share, limit in product(
            shares, limits(self.layers, self.sram, self.frames, self.rates.dma)
        ):
            parts = phases(self.search, self.search.within(limit), self.frames, share)
            if parts is not None and parts not in seen:
                seen.append(parts)
                found.append(self.built(parts))
        most = (1 + SPARED) * min((each.price for each in found), default=0.0)
        return sorted(
            found,
            key=lambda each: (
                each.price > most,
                each.written_bytes * (each.price <= most),
                each.price,
            ),
        )

    def built(self, parts: list[Phase]) -> Found:
        builder = Builder(self.graph, self.sram, self.rates, self.grain)
        for part, room in parts:
            builder.run(part, range(self.frames), room)
        tried = [schedule(builder.queues, first, self.rates.dma) for first in (False, True)]
        chosen = min(tried, key=lambda each: each.makespan_us)
        tasks = builder.queues.tasks
        io_us = sum(task.us for name in QUEUES if name != "compute" for task in tasks[name])
        steps_us = self.search.step_us * len(tasks["compute"])
        price = chosen.makespan_us + self.aim.io * io_us + steps_us
        return Found(price, io_us, chosen, builder, parts)

    def retiled(self, best: Found) -> Found:
        """``best`` with the weight tiles that make the cheapest schedule. How far reads run ahead
        of a segment depends on the bytes that those before leave, which no price knows: so first
        each segment's tiles are tried, then, with those of the one before, the tiles of a segment
        that the core waits in."""
        for changes in (self.alone, self.ahead):
            best = self.improved(best, changes)
        return best

    def improved(self, best: Found, changes: Changes) -> Found:
        """``best`` with what makes it cheaper of the ``changes`` of one segment after the other,
        first those that the card takes longest for, ``TASKS`` at most in all."""
        left, parts, rates = TASKS, best.parts, self.rates
        for place, (segments, room) in enumerate(parts):
            waits_us = [each.cpu_us(rates) - each.io_us(rates) for each in segments]
            for n in sorted(range(len(segments)), key=lambda n: waits_us[n]):
                for new in changes(self.search.within(room), segments, n):
                    left -= sum(map(len, best.builder.queues.tasks.values()))
                    if left < 0:
                        return best
                    changed = [*segments[: n + 1 - len(new)], *new, *segments[n + 1 :]], room
                    tried = self.built([*parts[:place], changed, *parts[place + 1 :]])
                    if tried.price <= best.price:
                        best, parts, segments = tried, tried.parts, changed[0]
        return best

    def alone(self, search: Search, segments: list[Segment], n: int) -> Iterator[list[Segment]]:
        """Segment ``n`` with other weight tiles."""
        for other in search.retiled(segments[n]):
            yield [other]

    def ahead(self, search: Search, segments: list[Segment], n: int) -> Iterator[list[Segment]]:
        """Segment ``n``, where the card takes longer than the core, and the one before with weight
        tiles of which many can be read while that one runs: the most promising first."""
        rates, found = self.rates, list[tuple[float, list[Segment]]]()
        waits = segments[n].cpu_us(rates) < segments[n].io_us(rates)
        if not n or self.frames > 1 or segments[n].streamed < 0 or not waits:
            return
        for before, own in product(search.retiled(segments[n - 1]), search.retiled(segments[n])):
            places = layout([*segments[: n - 1], before, own], search.sram_bytes, self.grain)
            tile_bytes = own.tile * own.layers[own.streamed].row_bytes
            early_us = places[-1].free * rates.move_us(tile_bytes, writes=False)
            us = max(before.cpu_us(rates), before.io_us(rates) + early_us)
            found.append((us + max(own.cpu_us(rates), own.io_us(rates) - early_us), [before, own]))
        for _, pair in sorted(found, key=lambda each: each[0])[:PAIRS]:
            yield pair


def limits(chain: tuple[TiledLayer, ...], sram: int, frames: int, dma: bool) -> tuple[int, ...]:
    """Bytes that each frame alone may take: all, or less. Of several frames, so that weights of the
    dense layers can arrive meanwhile; of one, since large segments leave no room to read ahead,
    which their prices do not know: with DMA, less memory can be faster."""
    if frames == 1:
        return (sram, int(SMALLER * sram)) if dma else (sram,)
    return (sram, sram // 4) if tail(chain) < len(chain) else (sram,)


def phases(search: Search, alone: Search, frames: int, share: Share) -> list[Phase] | None:
    """What each frame runs through alone, then what all frames do together: the dense layers at
    the end, whose weights are read once for all of them where there is room for that. None where
    a frame has too little room."""
    number, sram, least = len(search.layers), search.sram_bytes, alone.sram_bytes
    first = tail(search.layers) if frames > 1 else number
    together = list(batch(search, first, frames, sram - least)) if first < number else []
    last = first - 1 if together else number - 1
    result = list[Phase]()
    if last >= 0:
        segments = alone.best(0, last, share)
        if not segments:
            return None
        result.append((segments, least))
    return [*result, (together, sram)] if together else result


def batch(search: Search, first: int, frames: int, quiet: int) -> Iterator[Segment]:
    """``quiet``: bytes that nobody else needs while the weights arrive; 0: none."""
    last, result = len(search.layers) - 1, list[Segment]()
    for number in range(first, last + 1):
        source: Place = "stored" if number == first else "kept"
        target: Place = "stored" if number == last else "kept"
        segment = search.batched(number, source, target, frames, quiet)
        if segment is None:
            return
        result.append(segment)
    yield from result
