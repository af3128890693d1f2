"""``python -m tests.strategies.swap.bench_in_place [network ...] [bytes ...]``: what swapped plans
would save if a segment's rows overwrote rows of its source that are not needed any more. That is
the SRAM from which on feature maps stay, and the time over computing, by the search's estimate, on
the card. It is an upper limit: it takes for granted that what a segment needs besides always has a
place beside the two. docs/decisions/0022 says why plans have none of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

from pipeline.kernels.alone import alone_us
from pipeline.plan.rates import Rates
from pipeline.search.swap.best import SHARES
from pipeline.search.swap.layers import layers, timed
from pipeline.search.swap.resident import maps_stay_bytes
from pipeline.search.swap.search import Search
from pipeline.search.swap.segments import Segment
from pipeline.strategies.swap import left
from tests.strategies.swap.bench_card import NETWORKS
from tests.targets.cortex_m import board_named

SIZES = (57_344, 65_536, 131_072, 262_144, 320_000, 524_288)
LEAD = 0.1
"""Of what a segment reads before it begins: what is not hidden behind the one before."""


def in_place_bytes(segment: Segment) -> int:
    """What it needs if its target takes the place of its source, both in SRAM."""
    before, after = segment.source_bytes, segment.target_bytes
    return segment.inner_bytes + min(before + after, together(segment, before, after))


def in_place() -> AbstractContextManager[object]:
    return patch.object(Segment, "needed_bytes", property(in_place_bytes))


def together(segment: Segment, before: int, after: int) -> int:
    """Bytes of source and target."""
    last = segment.layers[-1]
    if segment.source != "kept" or segment.target == "stored" or segment.batch > 1:
        return before + after
    if len(segment.rings.turns) > 1:
        return max(after, before + ahead(segment))
    if segment.source_dies or (segment.streamed < 0 and not direct(segment)):
        return max(before, after)
    rowwise = len(segment.layers) == 1 and last.channelwise
    return max(after, before + 2 * after // last.shape[0]) if rowwise else before + after


def direct(segment: Segment) -> bool:
    """Whether the last layer reads the source."""
    return any(s.tensor == segment.outside[0].tensor for s in segment.layers[-1].sources)


def ahead(segment: Segment) -> int:
    """How far below its source the target has to begin: so that it reaches no row which a later
    layer or turn reads."""
    source, last, turns = segment.outside[0], segment.layers[-1], segment.rings.turns
    row_bytes = last.target_bytes // last.shape[0]
    lows = [min([*reads(segment, n), source.rows]) for n in range(len(turns))]
    lowest = [min([*lows[n:], source.rows]) for n in range(len(turns) + 1)]
    return max(
        turn.computes[-1][1] * row_bytes - lowest[n + (not direct(segment))] * source.row_bytes
        for n, turn in enumerate(turns)
    )


def reads(segment: Segment, turn: int) -> Iterator[int]:
    """The first rows of the source that layers read in a turn."""
    for layer, rows in zip(segment.layers, segment.rings.turns[turn].reads, strict=True):
        for source, (low, high) in zip(layer.sources, rows, strict=True):
            if source.tensor == segment.outside[0].tensor and low < high:
                yield low


def searched(name: str, sram_bytes: int) -> tuple[Search, int]:
    """A search in so much SRAM on the card, and the part of it that tiles don't get."""
    graph, hardware = NETWORKS[name](), replace(board_named("stm32f746g_sd"), sram_bytes=sram_bytes)
    rates, free, grain = Rates.of(hardware), left(graph, hardware), hardware.card.line_bytes
    chain = timed(layers(graph), alone_us(graph, hardware), rates)
    return Search(chain, free // grain * grain, rates, grain), sram_bytes - free


def stay_bytes(name: str) -> int:
    search, besides = searched(name, SIZES[-1])
    return maps_stay_bytes(search) + besides


def overhead_pct(name: str, sram_bytes: int) -> float:
    """Over computing; infinite where nothing fits."""
    search, _ = searched(name, sram_bytes)
    rates, last = search.rates, len(search.layers) - 1
    ways = [search.best(0, last, share) for share in SHARES]
    times = [sum(s.busy_us(rates) + LEAD * s.lead_us(rates) for s in way) for way in ways if way]
    alone = rates.compute_us(sum(layer.work for layer in search.layers))
    return 100 * (min(times, default=float("inf")) / alone - 1)


def main(words: list[str]) -> None:
    sizes = [int(word) for word in words if word.isdigit()]
    for name in [word for word in words if not word.isdigit()] or list(NETWORKS):
        apart = stay_bytes(name)
        with in_place():
            together = stay_bytes(name)
        print(f"{name}: maps stay from {apart:,} B, in place from {together:,} B", flush=True)
        for sram_bytes in sizes or SIZES:
            pct = overhead_pct(name, sram_bytes)
            with in_place():
                less = overhead_pct(name, sram_bytes)
            print(f"{name}, {sram_bytes:,} B: {pct:.2f} %, in place {less:.2f} %", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
