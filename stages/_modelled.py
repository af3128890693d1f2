"""What a plan needs and how long it takes by the kernels' models, neither proved nor tried."""

from __future__ import annotations

from math import inf
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import modelled_cycles
from pipeline.plan.cost import high_water_nibbles, timeline
from pipeline.plan.vocabulary import Plan
from pipeline.timing.summary import swaps


def modelled(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, Any]:
    """``pmu_bytes``, ``arena_bytes``; ``modelled_us`` where there is C for it and no card."""
    arena = high_water_nibbles(plan, hardware.activation_memory, constants=False)
    found: dict[str, Any] = {
        "pmu_bytes": max((moment.live_bytes for moment in timeline(plan)), default=0.0),
        "arena_bytes": -(-arena // 2),
    }
    cycles = inf if swaps(plan) else modelled_cycles(plan, graph, hardware)
    if cycles < inf:
        found["modelled_us"] = round(cycles / hardware.clock_hz * 1e6, 1)
    return found
