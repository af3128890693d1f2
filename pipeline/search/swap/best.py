"""The scheduler ``best``: segments found by search, their transfers by list scheduling."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf
from typing import NamedTuple

from pipeline.anytime import AnytimeSearch
from pipeline.graph.graph import Graph
from pipeline.placement.blocks import round_up
from pipeline.plan.rates import Rates
from pipeline.plan.tried import Tried
from pipeline.schedules.lower import Notes
from pipeline.schedules.swapped import Swapped
from pipeline.search.swap.build import add
from pipeline.search.swap.lower_bounds import Bound, lower_bound
from pipeline.search.swap.queues import Queues, Scheduled, frozen, schedule
from pipeline.search.swap.search import (
    NEVER,
    PLACES,
    Search,
    Share,
    choices,
    maps_stay_bytes,
    weights_stay_bytes,
)
from pipeline.search.swap.segments import GRAIN, Segment
from pipeline.search.view.tiles import TiledLayer, homes, staying

SHARES = (
    *(Share(lead) for lead in (1.0, 0.35, 0.1, 0.03)),
    Share(1.0, 0.1, 0.0), Share(0.35, 0.25, 0.0), Share(0.35, 0.1, 1.0),
    Share(0.35, 0.1, 1.0, sparing=True),
)  # fmt: skip
"""One search each."""
TASKS = 60_000
"""Most tasks, in all, of the schedules with other weight tiles that are tried."""
TOGETHER = 32768
"""Bytes of a weight tile that is used for several frames."""
SMALLER = 0.6
"""Part of SRAM that each frame alone is tried in, too, if there is DMA: large segments leave no
room to read ahead, which their prices do not know."""
STAYS = ("maps_stay_bytes", "weights_stay_bytes")
"""Notes: SRAM from which on feature maps, or weights, are not swapped any more."""
SPARED = 0.005
"""Part of the price by which a plan that writes less to the card may cost more."""
NEAR = 3
"""Number of cheapest plans whose kernels' times are asked for."""


Phase = tuple[list[Segment], int]
"""Segments, and the bytes of SRAM that they may take."""


class Found(NamedTuple):
    """``price``: what is made small, in microseconds; ``io_us``: of reading and writing."""

    price: float
    io_us: float
    scheduled: Scheduled
    program: Queues
    parts: list[Phase]

    @property
    def written_bytes(self) -> int:
        """To the card, for each frame."""
        return sum(each.written_bytes for segments, _ in self.parts for each in segments)

    def tried(self, frames: int) -> Tried:
        """Summarise an inference."""
        tasks = self.program.tasks
        read_us, write_us = (sum(task.us for task in tasks[name]) for name in ("read", "write"))
        whole_us = self.scheduled.makespan_us
        return Tried(whole_us / frames, read_us / frames, write_us / frames, self.written_bytes)


class Aim(NamedTuple):
    """
    Attributes:
        io: how many microseconds one of the card's counts, besides those of the makespan.
        flash_bytes: that weights may stay in; 0: all of them lie on the card.
    """

    io: float = 0.0
    flash_bytes: int = 0


LATENCY = Aim()

Answer = tuple[Swapped, Notes]


def search(
    graph: Graph, chain: tuple[TiledLayer, ...], sram_bytes: int, frames: int, rates: Rates,
    line_bytes: int = 1, aim: Aim = LATENCY,
    anytime: AnytimeSearch[Callable[[], Answer]] | None = None,
    longer_us: Callable[[Swapped], float] = lambda region: 0.0,
) -> Answer:  # fmt: skip
    """Search for the best plan. If nothing fits, return what does in as much memory as every layer
    needs: its size is the answer.

    Args:
        line_bytes: of a data cache; no two things share one.
        anytime: is told what is best so far, as what makes it.
        longer_us: how much longer kernels take in pieces than whole, which prices do not know.
    """
    grain = max(GRAIN, line_bytes)
    sram = sram_bytes // grain * grain
    shown, known = anytime or AnytimeSearch[Callable[[], Answer]](), inf

    def better(tries: Tries, found: Found) -> None:
        nonlocal known
        if found.price < known:
            known, ms = found.price, found.scheduled.makespan_us / 1e3
            shown.has(lambda: _answer(tries, chain, found, [found]), f"{ms:,.1f} ms")
            shown.bounded(lambda: f"{tries.bound(chain).us / 1e3:,.1f} ms")

    tries = Tries(graph, chain, sram, frames, rates, grain=grain, aim=aim, tell=better)
    shown.tries("segments", 0.0)
    found = tries.found()
    if not found:
        sram = max(sram, tries.search.least_bytes)
        tries = replace(tries, sram=sram)
        found = tries.found()
    segments = [each for part, _ in found[0].parts for each in part]
    shown.tries("weights in flash", 0.3)
    for weights in choices(segments, rates, aim.flash_bytes):
        less, most = replace(tries, layers=staying(chain, weights)), (1 + SPARED) * found[0].price
        others = [each for each in less.found() if each.price <= most]
        if others and others[0].io_us < found[0].io_us:
            tries, found = less, others
    shown.tries("weight tiles", 0.6)
    near = tries.retiled(found[0]), *found[:NEAR]
    asked = [each._replace(price=each.price + longer_us(_region(tries, each))) for each in near]
    return _answer(tries, chain, ranked(asked)[0], found)


def ranked(found: list[Found]) -> list[Found]:
    """Put the cheapest first, but for one as good that writes less to the card."""
    order = sorted(found, key=lambda each: each.price)
    near = sum(each.price <= (1 + SPARED) * order[0].price for each in order)
    return sorted(order[:near], key=lambda each: each.written_bytes) + order[near:]


def _region(tries: "Tries", found: Found) -> Swapped:
    computing, moving = frozen(found.program, found.scheduled.io)
    windows = tuple(found.program.windows.values())
    return Swapped(*homes(tries.layers), windows, lambda: computing, lambda: moving, tries.sram)


def _answer(
    tries: "Tries", chain: tuple[TiledLayer, ...], best: Found, found: list[Found]
) -> Answer:
    rates, flash_bytes = tries.rates, tries.aim.flash_bytes
    on_chip = {name for layer in tries.layers if not layer.weight for name in layer.fixed}
    in_flash = sum(layer.weight_bytes for layer in chain if layer.weight in on_chip)
    bound, plain = tries.bound(chain), Search(chain, rates, tries.grain)
    least = maps_stay_bytes(plain), weights_stay_bytes(plain, flash_bytes)
    notes: Notes = (
        ("scheduler", "best"),
        ("makespan_us", best.scheduled.makespan_us),
        ("bound_us", bound.us),
        ("bound_by", bound.by),
        ("bound_overhead_pct", bound.overhead_pct),
        ("weights_in_flash_bytes", in_flash),
        *((key, size) for key, size in zip(STAYS, least, strict=True) if size < NEVER),
        ("trade", ";".join(str(each.tried(tries.frames)) for each in (best, *found))),
    )
    return _region(tries, best), notes


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
    tell: Callable[["Tries", Found], None] = lambda tries, found: None

    def bound(self, chain: tuple[TiledLayer, ...]) -> Bound:
        """Bound all schedules of ``chain``."""
        flash = self.aim.flash_bytes
        return lower_bound(chain, self.graph, self.sram, self.rates, self.frames, flash)

    @cached_property
    def search(self) -> Search:
        return Search(self.layers, self.rates, self.grain)

    def found(self) -> list[Found]:
        """Return one for each way to weigh things, the cheapest first, but for one as good that
        writes less to the card; none where nothing fits."""
        found, seen = list[Found](), list[list[Phase]]()
        shares = SHARES if self.frames == 1 else SHARES[:3:2]
        saving = (Share(1.0, self.aim.io, 1.0), Share(0.35, self.aim.io, 0.0))
        shares = (*shares, *saving) if self.aim.io else shares
        less = int(SMALLER * self.sram) // self.grain * self.grain
        for share, limit in product(shares, (self.sram, *[less] * self.rates.dma)):
            parts = self.phases(limit, share)
            if parts and parts not in seen:
                seen.append(parts)
                found.append(self.built(parts))
        return ranked(found)

    def phases(self, limit: int, share: Share) -> list[Phase]:
        """List what each frame runs through alone, in ``limit`` bytes, then what all do together.
        Empty where a frame has too little room."""
        number = len(self.layers) - len(self.together)
        segments = self.search.best(limit, number, share)
        if number and not segments:
            return []
        phases = (segments, limit), (self.together, self.sram)
        return [each for each in phases if each[0]]

    @cached_property
    def together(self) -> list[Segment]:
        """The dense layers at the end, one after the other, each for all frames at once, so that
        its weights are read once; none of one frame, or where one does not fit. Their tiles fill
        all that is left."""
        result = list[Segment]()
        for number in reversed(range(len(self.layers) if self.frames > 1 else 0)):
            layer, rings = self.layers[number], self.search.ring(number, number, 1)
            dense = layer.weight and not layer.sources[0].windows
            if not dense or (result and result[0].kept != layer.target):
                break
            tile = max(1, min(layer.channels, TOGETHER // layer.row_bytes))
            source, target = layer.sources[0].tensor, PLACES[bool(result)]
            one = Segment(
                (layer,), rings, source, target, streamed=0, tile=tile, copies=1, batch=self.frames
            )
            free = self.sram - one.needed_bytes
            copies = 1 + free // round_up(tile * layer.row_bytes, self.grain)
            if copies <= 1:
                return []
            result.insert(0, replace(one, copies=min(copies, one.tiles)))
        return [replace(each, kept=each.kept if n else "") for n, each in enumerate(result)]

    def built(self, parts: list[Phase]) -> Found:
        program = Queues(self.sram, self.grain)
        for part, room in parts:
            add(program, self.graph, self.rates, part, range(self.frames), room)
        tried = [schedule(program, first, self.rates.dma) for first in (False, True)]
        chosen = min(tried, key=lambda each: each.makespan_us)
        io_us = sum(task.us for name in ("read", "write") for task in program.tasks[name])
        steps_us = self.search.step_us * len(program.tasks["compute"])
        price = chosen.makespan_us + self.aim.io * io_us + steps_us
        found = Found(price, io_us, chosen, program, parts)
        self.tell(self, found)
        return found

    def retiled(self, best: Found) -> Found:
        """``best`` with the weight tiles that make the cheapest schedule: how far reads run ahead
        depends on the bytes that other segments leave, which no price knows. One segment after the
        other, first those that the card takes longest for, with ``TASKS`` at most in all."""
        left, parts = TASKS, best.parts
        for place, (segments, room) in enumerate(parts):
            times = [each.times(self.rates) for each in segments]
            for n in sorted(range(len(segments)), key=lambda n: times[n].cpu - times[n].io):
                for other in self.search.retiled(segments[n], room):
                    left -= sum(map(len, best.program.tasks.values()))
                    if left < 0:
                        return best
                    changed = [*segments[:n], other, *segments[n + 1 :]], room
                    tried = self.built([*parts[:place], changed, *parts[place + 1 :]])
                    if tried.price <= best.price:
                        best, parts, segments = tried, tried.parts, changed[0]
        return best
