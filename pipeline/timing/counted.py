"""Times a run with a card: the plan's two tracks, with the cycles that each call of a kernel took
on the simulated core and the card's charged transfer times. Polling is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates
from pipeline.plan.vocabulary import Plan
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized

LATENCY = ("latency_low_us", "latency_us", "latency_high_us")
AS_RUN = ("overhead_pct", "throughput_fps", "throughput_loss_pct", "energy_overhead_pct")
"""Figures of a plan that its run has, too, with ``run_`` before them."""


def latency(
    plan: Plan, graph: Graph, hardware: Hardware, device: Mapping[str, Any]
) -> dict[str, Any]:
    """``LATENCY`` of one inference, of several in flight its share, the reading of its result
    included, and ``AS_RUN`` without that; nothing where no card is used or nothing was counted.

    Args:
        device: the content of device.json.
    """
    if "beside_card" not in device:
        return {}
    counted, us = device["beside_card"], 1e6 / hardware.clock_hz
    bands = {op.name: np.zeros((0, len(LATENCY))) for op in graph.operators}
    bands |= {name: np.array(calls, float) for name, calls in counted["kernels"].items()}
    sealing_us = simulate(plan, graph, hardware).sealing_us
    sealing = counted["sealing"] * us / sealing_us if sealing_us else 1.0
    result_us = Rates.of(hardware).move_us(graph.tensors[graph.output].bytes, writes=False)
    found = dict[str, Any]()
    for at, name in enumerate(LATENCY):
        calls = {op: band[:, at] * us for op, band in bands.items()}
        ran = simulate(plan, graph, hardware, calls, sealing)
        found[name] = ran.makespan_us / plan.frames + result_us
        if name == "latency_us":
            said = summarized(ran, graph, hardware)
            found |= {f"run_{name}": said[name] for name in AS_RUN if name in said}
    return found
