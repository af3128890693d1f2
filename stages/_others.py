"""What other strategies would need on this board, of those that plan the network in a moment."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from math import ceil
from typing import Any

from pipeline import strategies
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import high_water_nibbles, timeline
from pipeline.plan.vocabulary import Plan
from pipeline.strategies import coded
from pipeline.strategies.base import Strategy


def others(plan: Plan, graph: Graph, hardware: Hardware) -> list[dict[str, Any]]:
    """A row for each strategy but the plan's own, with its default keys: ``pmu_bytes``,
    ``needed_bytes`` of the memory that holds the activations, whether it ``fits``; or ``why`` it
    has no plan. Nothing is proved or tried."""
    own = plan.strategy.partition("/")[0]
    return [
        {"strategy": each.name, **_needs(each, graph, hardware)}
        for each in at_a_glance(graph.macs)
        if each.name != own
    ]


def at_a_glance(macs: int) -> list[type[Strategy]]:
    """The strategies that plan a network of so many multiply–accumulates in a second, by name."""
    found = set()
    for module in pkgutil.iter_modules(strategies.__path__):
        members = vars(importlib.import_module(f"{strategies.__name__}.{module.name}")).values()
        found |= {
            each
            for each in members
            if isinstance(each, type) and issubclass(each, Strategy)
            and not inspect.isabstract(each) and each.glance_macs >= macs
        }  # fmt: skip
    return sorted(found, key=lambda each: each.name)


def _needs(strategy: type[Strategy], graph: Graph, hardware: Hardware) -> dict[str, Any]:
    try:
        plan = strategy().plan(graph, hardware)
        coded.check(plan, graph, hardware)
    except ThimbleError as error:
        return {"why": str(error)}
    memory = hardware.activation_memory
    needed = ceil(high_water_nibbles(plan, memory, constants=True) / 2)
    needed += hardware.stack_reserve_bytes if memory == hardware.stack_memory else 0
    sizes = {each.name: each.bytes for each in hardware.memories}
    return {
        "pmu_bytes": max((moment.live_bytes for moment in timeline(plan)), default=0.0),
        "needed_bytes": needed,
        "fits": needed <= sizes[memory],
    }
