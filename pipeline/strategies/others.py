"""Memory that other strategies need on this board, of those that plan the network in a moment."""

import inspect
import pkgutil
from importlib import import_module
from math import ceil
from typing import Any

from pipeline import strategies
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import modelled
from pipeline.plan.cost import high_water_nibbles, timeline
from pipeline.plan.vocabulary import Plan
from pipeline.strategies import coded
from pipeline.strategies.base import Strategy


def others(plan: Plan, graph: Graph, hardware: Hardware) -> list[dict[str, Any]]:
    """A row for each strategy but the plan's own, with its default keys: ``pmu_bytes``,
    ``needed_bytes`` of the memory that holds the activations, ``modelled_us``, whether it ``fits``;
    or ``why`` it has no plan. Nothing is proved or tried."""
    own = plan.strategy.partition("/")[0]
    every = [each for each in quick_planners(graph.macs) if each.name != own]
    return [{"strategy": each.name, **_needs(each, graph, hardware)} for each in every]


def quick_planners(macs: int) -> list[type[Strategy]]:
    """The strategies that plan a network of so many multiply–accumulates in a second, by name."""
    folder, package = strategies.__path__, strategies.__name__
    modules = [import_module(f"{package}.{each.name}") for each in pkgutil.iter_modules(folder)]
    found = {
        each
        for module in modules
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Strategy) and hasattr(each, "name") and each.quick_plan_macs >= macs
    }
    return sorted(found, key=lambda each: each.name)


def _needs(strategy: type[Strategy], graph: Graph, hardware: Hardware) -> dict[str, Any]:
    try:
        plan = strategy().plan(graph, hardware)
        coded.check(plan, graph, hardware)
    except ThimbleError as error:
        return {"why": str(error)}
    (memory,) = (each for each in hardware.memories if each.name == hardware.activation_memory)
    needed = ceil(high_water_nibbles(plan, memory.name, constants=True) / 2)
    needed += hardware.stack_reserve_bytes if memory.name == hardware.stack_memory else 0
    pmu_bytes = max((moment.live_bytes for moment in timeline(plan)), default=0.0)
    found = {"pmu_bytes": pmu_bytes, "needed_bytes": needed, "fits": needed <= memory.bytes}
    time = {} if plan.on_card else modelled(plan, graph, hardware)
    if time.get("modelled_by") == "kernels":
        found["modelled_us"] = time["modelled_us"]
    return found
