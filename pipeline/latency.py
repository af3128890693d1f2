"""How long a run of a plan takes, before there is a program: what limits of latency are kept by."""

from __future__ import annotations

from math import inf

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import modelled_cycles
from pipeline.plan.vocabulary import Plan
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import swaps


def modelled_us(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """By the kernels' models; infinite where there is no C for it, or a card is used."""
    cycles = inf if swaps(plan) else modelled_cycles(plan, graph, hardware)
    return cycles / hardware.clock_hz * 1e6


def planned_us(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """With a card as simulated; else by the kernels' models; where there are none, as long as its
    multiply–accumulates take at ``hardware.cycles_per_mac``."""
    if swaps(plan):
        return float(simulate(plan, graph, hardware).makespan_us)
    found = modelled_us(plan, graph, hardware)
    return found if found < inf else graph.macs * hardware.cycles_per_mac / hardware.clock_hz * 1e6
