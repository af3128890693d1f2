"""The scheduler ``best``: segments found by search, their transfers by list scheduling."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates
from pipeline.plan.vocabulary import Plan, Track
from pipeline.strategies.swap.bounds import bounds
from pipeline.strategies.swap.build import Builder
from pipeline.strategies.swap.layers import layers
from pipeline.strategies.swap.places import biases, on_card
from pipeline.strategies.swap.program import Scheduled, frozen, schedule
from pipeline.strategies.swap.roll import rolled
from pipeline.strategies.swap.search import Search, tail
from pipeline.strategies.swap.segments import Place, Segment

SHARES = (1.0, 0.3, 0.1)
"""Of a segment's lead that its price counts: one search each."""


def plan(graph: Graph, hardware: Hardware, name: str, frames: int, rates: Rates) -> Plan:
    """
    Raises:
        ThimbleError: as ``layers`` does, and where a layer fits in no way.
    """
    chain = layers(graph)
    sram = (hardware.sram_bytes - hardware.stack_reserve_bytes) // 16 * 16
    found: tuple[Scheduled, Builder] | None = None
    search = Search(chain, sram, rates)
    for share in SHARES:
        parts = list(phases(search, frames, share))
        builder = Builder(graph, sram, rates)
        for number, part in enumerate(parts):
            builder.run(part, range(frames), f"p{number}s")
        for writes_first in (False, True):
            tried = schedule(builder.program, writes_first)
            if found is None or tried.makespan_us < found[0].makespan_us:
                found = tried, builder
    assert found is not None
    scheduled, builder = found
    steps, transfers = frozen(builder.program, scheduled.io)
    cpu, io = rolled(steps), rolled(transfers)
    card = next(memory for memory in hardware.memories if memory.kind == "block")
    maps, weights = on_card(chain, graph, frames, card.granule_bytes)
    fixed = biases(chain, graph, hardware)
    bound = bounds(chain, graph, sram, rates, frames)
    notes = (
        ("scheduler", "best"),
        ("makespan_us", scheduled.makespan_us),
        ("bound_us", bound.us),
        ("bound_by", bound.by),
    )
    resident = (graph.input, *(buffer.name for buffer in (*weights, *fixed)))
    return Plan(
        graph.name, name, hardware.memories,
        (*builder.buffers.values(), *maps, *weights, *fixed),
        (Track("cpu", cpu), Track("io", io)), resident, graph.output, notes, frames,
    )  # fmt: skip


def phases(search: Search, frames: int, share: float) -> Iterator[list[Segment]]:
    """What each frame runs through alone, then what all frames do together: the dense layers at
    the end, whose weights are read once for all of them where there is room for that."""
    chain, number = search.layers, len(search.layers)
    first = tail(chain) if frames > 1 else number
    together = list(batch(search, first, frames)) if first < number else []
    if together:
        if first:
            yield search.best(0, first - 1, share)
        yield together
    else:
        yield search.best(0, number - 1, share)


def batch(search: Search, first: int, frames: int) -> Iterator[Segment]:
    last, result = len(search.layers) - 1, list[Segment]()
    for number in range(first, last + 1):
        source: Place = "card" if number == first else "sram"
        segment = search.batched(number, source, "card" if number == last else "sram", frames)
        if segment is None:
            return
        result.append(segment)
    yield from result
