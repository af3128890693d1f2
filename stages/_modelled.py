"""What a plan needs and how long it takes by the kernels' models, neither proved nor tried."""

from __future__ import annotations

from math import inf
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import cycles_by_operator, modelled_cycles
from pipeline.plan.cost import high_water_nibbles, timeline
from pipeline.plan.forms import forms
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


def formed(plan: Plan, graph: Graph, hardware: Hardware) -> list[dict[str, Any]]:
    """How the plan runs each operator; its ``modelled_cycles`` where kernels' models are of the
    core and no card is used."""
    known = hardware.core == "cortex_m" and not swaps(plan)
    cycles = cycles_by_operator(plan, graph, hardware) if known else {}
    rows = []
    for name, form in forms(plan).items():
        found = cycles.get(name, inf)
        rows.append(form.content() | ({"modelled_cycles": round(found)} if found < inf else {}))
    return rows
