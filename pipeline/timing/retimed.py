"""A plan's time in the simulator's own terms: kernels take the instructions that were counted, and
transfers what the simulated card charges. What the run then takes is known before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates, work
from pipeline.plan.vocabulary import Plan
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import swaps


def retimed_us(plan: Plan, graph: Graph, hardware: Hardware, counted: Mapping[str, Any]) -> float:
    """Of one inference, with the reading of its result. What begins and ends transfers keeps both
    tracks.

    Args:
        counted: instructions, one a cycle of the board's clock: of ``layers``; of ``invoke``, for
            all other layers, shared out by their work, and where there is no other for all: of
            layers with several functions it has swallowed one; of ``card``, which is no layer's.
    """
    layers = dict(counted["layers"])
    works = {op.name: work(op, graph) for op in graph.operators}
    inside = {name: size for name, size in works.items() if name not in layers} or works
    share = counted["invoke"] / max(1, sum(inside.values()))
    found = {name: layers.get(name, 0) + share * inside.get(name, 0) for name in works}
    us = {name: count / hardware.clock_hz * 1e6 for name, count in found.items()}
    begun_us = float(counted["card"]) / hardware.clock_hz * 1e6
    result_us = Rates.of(hardware).move_us(graph.tensors[graph.output].bytes, writes=False)
    whole = simulate(plan, graph, hardware, us, seals=False)  # which is among the card's
    return whole.makespan_us / plan.frames + begun_us + result_us


def compared(
    plan: Plan, graph: Graph, hardware: Hardware, device: Mapping[str, Any]
) -> dict[str, Any]:
    """``retimed_us``, the same in the run, ``virtual_us``, and by how much the first is more;
    nothing where no card is used or no instructions were counted.

    Args:
        device: the content of device.json.
    """
    if not swaps(plan) or "card_instructions" not in device:
        return {}
    found_us = retimed_us(plan, graph, hardware, device["card_instructions"])
    virtual_us = device["instructions"]["median"] / hardware.clock_hz * 1e6
    return {
        "retimed_us": found_us,
        "virtual_us": virtual_us,
        "retimed_error_pct": 100 * (found_us / virtual_us - 1),
    }
