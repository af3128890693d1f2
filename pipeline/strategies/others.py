"""Memory that other strategies need on this board, of those that plan the network in a moment."""

import inspect
import pkgutil
from importlib import import_module
from typing import Any

from pipeline import strategies
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import modelled
from pipeline.plan.cost import timeline
from pipeline.plan.fit import needs
from pipeline.plan.vocabulary import Plan
from pipeline.strategies import coded
from pipeline.strategies.base import Strategy


def others(plan: Plan, graph: Graph, hardware: Hardware) -> list[dict[str, Any]]:
    """Return a row for each strategy but the plan's own, with its default keys: ``pmu_bytes``,
    ``needed_bytes`` of the memory that holds the activations, ``modelled_us``, whether it ``fits``;
    or ``why`` it has no plan. Nothing is proved or tried."""
    own = plan.strategy.partition("/")[0]
    every = [each for each in quick_planners(graph.macs) if each.name != own]
    return [{"strategy": each.name, **figures(each(), graph, hardware)} for each in every]


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


def figures(strategy: Strategy, graph: Graph, hardware: Hardware) -> dict[str, Any]:
    try:
        plan = strategy.plan(graph, hardware)
        coded.check(plan, graph, hardware)
    except ThimbleError as error:
        return {"why": str(error)}
    memory = hardware.activation_memory
    needed, time = needs(plan, hardware)[memory], modelled(plan, graph, hardware)
    pmu_bytes = max((moment.live_bytes for moment in timeline(plan)), default=0.0)
    known = {"modelled_us": time["modelled_us"]} if time["modelled_by"] == "kernels" else {}
    fits = needed <= hardware.bytes_of(memory)
    return {"pmu_bytes": pmu_bytes, "needed_bytes": needed, "fits": fits, **known}
