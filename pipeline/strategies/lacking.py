"""Advice where activations don't fit: a bound on every plan that computes nothing twice, and what
would help, for this network on this board."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Any

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import streaming
from pipeline.schedules.lower import needed, room
from pipeline.search.view.tiles import layers


def lacking(
    report: Mapping[str, Any], plan: Plan, graph: Graph, hardware: Hardware
) -> dict[str, Any]:
    """Return what to add to ``report``, a plan's verdict: nothing if activations lie on a card; if
    they fit and a planner chose the plan, how far its memory may be above the least possible."""
    short = report["resource"].lower() == hardware.activation_memory
    crowded, notes = report["status"] == "infeasible" and short, dict(plan.notes)
    chosen = "form" in notes and "repeated_macs_pct" not in notes
    exact = all(b.bits == 32 for b in plan.buffers if b.role == "accumulator")
    if plan.on_card or not (crowded or (chosen and exact)):
        return {}
    from pipeline.search.lower_bound import lower_bound  # with it comes scipy

    bound = lower_bound(graph, needed(graph), streaming(graph, hardware))
    found = {"lower_bound_bytes": bound.bytes, "lower_bound_at": bound.at}
    if not crowded:
        above = report["pmu_bytes"] / bound.bytes - 1 if bound.bytes else inf
        return found | ({"above_bound_pct": round(100 * above, 1)} if above < inf else {})
    said = (
        f"no plan that computes nothing twice holds less than {bound.bytes:,g} B of activations, "
        f"for {bound.at}"
    )
    lacks = report["needed_bytes"] - report["available_bytes"]
    hopeless = 2 * bound.bytes > room(graph, hardware)
    helps = "".join(f"{way}, " for way in ways(plan, graph, hardware, lacks, hopeless))
    advice = report["advice"].replace("try ", f"try {helps}", 1)
    return {**found, "where": f"{report['where']}; {said}", "advice": advice}


def ways(
    plan: Plan, graph: Graph, hardware: Hardware, short_bytes: float, hopeless: bool = False
) -> Iterator[str]:
    """Yield settings that may help, as one types them.

    Args:
        short_bytes: by how much the memory is too small for ``plan``.
        hopeless: no plan can fit that computes nothing twice.
    """
    image, notes = graph.tensors[graph.starts[0]], dict(plan.notes)
    rows = len(graph.starts) == 1 and len(image.shape) == 3 and image.shape[0] > 1
    if not hardware.streams_input and rows and short_bytes <= image.bytes:
        # what streams in need not be held: no more than that is saved
        by_rows = notes.get("form") == "rows"
        yield "hardware.streams_input=true" + ("" if by_rows else " with strategy=auto")
    # where windows overlap parts of rows can be computed again instead of held
    images = (op for op in graph.operators if isinstance(op, Conv2d))
    spreads = any(max(graph.tensors[op.parameters[0]].shape[1:3]) > 1 for op in images)
    if notes.get("form") == "rows" and "repeated_macs_pct" not in notes and spreads:
        yield "strategy=joint strategy.extra_macs=0.1"
    sums = (b for b in plan.buffers if b.role == "accumulator" and b.bits == 32)
    if notes.get("accumulate_layers") and any(sums):
        yield "strategy.accumulator_bits=16 (rounded sums)"
    with suppress(ThimbleError):  # whose layers are not cut into tiles
        if hopeless and not hardware.storage and layers(graph):
            yield "a board with a card (strategy=swap, such as hardware=stm32f746g_sd)"
