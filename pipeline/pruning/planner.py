"""Needs of a float network, asked of the planner that ``strategy=`` names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline import board, passes
from pipeline.budget import UNREAD, above_input
from pipeline.config import instantiate
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.importers.float_graph import FloatGraph
from pipeline.kernels import modelled
from pipeline.plan.cost import Moment, timeline
from pipeline.plan.vocabulary import Plan
from pipeline.quantize.int8 import Int8
from pipeline.strategies.base import Strategy
from pipeline.timing.simulate import simulate

FRAMES = 2
"""Frames that ranges are observed on: plans depend on shapes alone."""


@dataclass(frozen=True)
class Needs:
    """Amounts that a network needs, by its plan.

    Attributes:
        amounts: by the limits' names: ``pmu_bytes``, ``weight_bytes``, ``macs``, ``latency_us``
            (``planned_us``).
        at: the operator at the peak.
        held: bytes that the tensors live at the peak take, by name; of several moments at which
            as much is held, the most.
        level: the tensors of each such moment, where that is known.
    """

    amounts: Mapping[str, float]
    at: str
    held: Mapping[str, float]
    level: Collection[frozenset[str]] = ()


@dataclass(frozen=True)
class Planner:
    """Plans as the stages after it will."""

    strategy: Strategy
    hardware: Hardware
    passes: Sequence[str]

    @classmethod
    def of(
        cls, strategy: Mapping[str, Any], hardware: Mapping[str, Any], names: Sequence[str]
    ) -> Planner:
        return cls(instantiate(strategy), board.hardware({**hardware, **UNREAD}), names)

    def __call__(self, network: FloatGraph) -> Needs:
        """
        Raises:
            ThimbleError: when the strategy has no plan for it.
        """
        graph = self._graph(network)
        plan = self.strategy.plan(graph, self.hardware)
        moments = list(timeline(plan))
        peak = max(moments, key=lambda each: (each.live_bytes, each.apart_bytes))
        amounts = {
            "pmu_bytes": peak.live_bytes,
            "weight_bytes": graph.weight_bytes,
            "macs": graph.macs,
            "latency_us": planned_us(plan, graph, self.hardware),
        }
        level = [each for each in moments if each.live_bytes == peak.live_bytes]
        return Needs(amounts, peak.label, *_held(plan, level))

    def estimate(self, network: FloatGraph) -> Needs | None:
        """About what it needs, but for time, where the strategy can tell without a plan."""
        graph = self._graph(network)
        seen = self.strategy.estimate(graph, self.hardware)
        if seen is None:
            return None
        amounts = {
            "pmu_bytes": seen.peak_bytes,
            "weight_bytes": graph.weight_bytes,
            "macs": graph.macs,
        }
        held = {name: float(graph.tensors[name].bytes) for each in seen.level for name in each}
        return Needs(amounts, "", held, seen.level)

    def _graph(self, network: FloatGraph) -> Graph:
        made = Int8(images=FRAMES, observer="minmax", threads=1).from_float(network)
        return passes.applied(made, self.passes)

    def check(self, network: FloatGraph, limits: Mapping[str, float]) -> None:
        """Raises ThimbleError for a limit that no pruning can keep."""
        free = self.hardware.streams_input or self.hardware.input_again
        above_input(limits, network.shapes[network.input], free)


def planned_us(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """Return a run's time: with a card as simulated; else all work of the core, as modelled."""
    if plan.on_card:
        return simulate(plan, graph, hardware).makespan_us
    return float(modelled(plan, graph, hardware)["modelled_us"])


def _held(
    plan: Plan, level: Sequence[Moment]
) -> tuple[dict[str, float], Collection[frozenset[str]]]:
    most: dict[str, float] = {}
    every = set[frozenset[str]]()
    for moment in level:
        found: dict[str, float] = {}
        for name, size in moment.buffers:
            tensor = plan.buffer[name].tensor
            found[tensor] = found.get(tensor, 0.0) + size
        most.update((name, max(size, most.get(name, 0.0))) for name, size in found.items())
        every.add(frozenset(found))
    return most, every
