"""The scheduler ``best``: segments found by search, their transfers by list scheduling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.schedules.swapped import Swapped
from pipeline.search.swap.build import Builder
from pipeline.search.swap.layers import Proposal, TiledLayer, homes
from pipeline.search.swap.lower_bounds import lower_bound
from pipeline.search.swap.queues import Scheduled, frozen, schedule
from pipeline.search.swap.search import Search, Share, least_bytes, tail
from pipeline.search.swap.segments import GRAIN, Place, Segment

SHARES = (
    *(Share(lead) for lead in (1.0, 0.35, 0.1, 0.03)),
    Share(1.0, 0.1, 0.0), Share(0.35, 0.25, 0.0), Share(0.35, 0.1, 1.0),
)  # fmt: skip
"""One search each."""
TASKS = 60_000
"""Of all schedules with other weight tiles that are tried."""

Found = tuple[Scheduled, Builder]


def search(
    graph: Graph,
    chain: tuple[TiledLayer, ...],
    sram_bytes: int,
    frames: int,
    rates: Rates,
    line_bytes: int = 1,
) -> Proposal:
    """Where nothing fits, what does in as much memory as every layer needs: its size is the
    answer.

    Args:
        line_bytes: of a data cache; no two things share one.
    """
    grain = max(GRAIN, line_bytes)
    sram = sram_bytes // grain * grain
    found = fastest(graph, chain, sram, frames, rates, grain)
    if found is None:
        sram = max(sram, least_bytes(chain, grain))
        found = fastest(graph, chain, sram, frames, rates, grain)
    assert found is not None
    scheduled, builder = found
    windows = tuple(builder.windows.values())
    region = Swapped(*homes(chain), windows, *frozen(builder.queues, scheduled.io))
    bound = lower_bound(chain, graph, sram, rates, frames)
    notes = (
        ("scheduler", "best"),
        ("makespan_us", scheduled.makespan_us),
        ("bound_us", bound.us),
        ("bound_by", bound.by),
        ("bound_overhead_pct", bound.overhead_pct),
    )
    return Proposal(region, sram, notes)


def fastest(
    graph: Graph,
    chain: tuple[TiledLayer, ...],
    sram: int,
    frames: int,
    rates: Rates,
    grain: int = GRAIN,
) -> Found | None:
    """The best schedule found in ``sram`` bytes; None where none was."""
    search, found = Search(chain, sram, rates, grain), list[tuple[float, list[Phase]]]()

    def built(parts: list[Phase]) -> tuple[float, Found]:
        builder = Builder(graph, sram, rates, grain)
        for part, room in parts:
            builder.run(part, range(frames), room)
        tried = [schedule(builder.queues, first) for first in (False, True)]
        chosen = min(tried, key=lambda each: each.makespan_us)
        steps = len(builder.queues.tasks["compute"])
        return chosen.makespan_us + search.step_us * steps, (chosen, builder)

    shares = SHARES if frames == 1 else SHARES[:3:2]
    for share, limit in product(shares, limits(chain, sram, frames)):
        parts = phases(search, search.within(limit), frames, share)
        if parts is not None:
            found.append((built(parts)[0], parts))
    if not found:
        return None
    _, parts = min(found, key=lambda each: each[0])
    return retiled(search, parts, built)


def retiled(
    search: Search, parts: list[Phase], built: Callable[[list[Phase]], tuple[float, Found]]
) -> Found:
    """``parts`` with the weight tiles that make the fastest schedule: tried one segment after the
    other, first those that the card takes longest for. How far reads run ahead of a segment depends
    on the bytes that those before leave, which no price knows."""
    price, best = built(parts)
    left = TASKS
    for place, (segments, room) in enumerate(parts):
        waits_us = [each.cpu_us(search.rates) - each.io_us(search.rates) for each in segments]
        for n in sorted(range(len(segments)), key=lambda n: waits_us[n]):
            for other in search.within(room).retiled(segments[n]):
                left -= sum(map(len, best[1].queues.tasks.values()))
                if left < 0:
                    return best
                changed = [*segments[:n], other, *segments[n + 1 :]], room
                tried = [*parts[:place], changed, *parts[place + 1 :]]
                if (found := built(tried))[0] <= price:
                    (price, best), parts, segments = found, tried, changed[0]
    return best


def limits(chain: tuple[TiledLayer, ...], sram: int, frames: int) -> tuple[int, ...]:
    """Bytes that each frame alone may take: less than all, so that weights of the dense layers can
    arrive meanwhile."""
    return (sram, sram // 4) if frames > 1 and tail(chain) < len(chain) else (sram,)


Phase = tuple[list[Segment], int]
"""Segments, and the bytes of SRAM that they may take."""


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
