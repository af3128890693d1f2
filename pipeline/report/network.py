"""The network as layers: shapes, work, bytes, and how the plan runs each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.plan.cost import Cost
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.report.memory_map.clock import Clock


@dataclass(frozen=True)
class Layer:
    """One operator.

    Attributes:
        besides: the layers before the last one whose outputs it also reads.
        runs: how the plan runs it, in words.
        live_bytes: the most in use while it runs.
        cycles, share: measured, and its part of the whole; the share of the work where no cycles
            are known.
        widths: of its input and its output, to draw: parts of the largest tensor.
    """

    name: str
    kind: str
    source: str
    target: str
    type: str
    macs: int
    weight_bytes: float
    output_bytes: float
    live_bytes: float | None
    besides: tuple[str, ...]
    runs: str
    cycles: int | None
    share: float
    widths: tuple[float, float]


def layers(
    graph: Graph, plan: Plan, cost: Cost, clock: Clock, metrics: Mapping[str, Any]
) -> tuple[Layer, ...]:
    """In the order of the graph."""
    cycles = {row["layer"]: row["cycles"] for row in metrics.get("layers", ())}
    whole = sum(cycles.values()) or graph.macs or 1
    largest = max(graph.tensors[op.output].bytes for op in graph.operators)
    largest = max(largest, graph.tensors[graph.input].bytes)
    makers = {op.output: op.name for op in graph.operators}
    runs = forms(plan, clock)
    found, before = [], graph.input
    for op in graph.operators:
        source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
        macs = op.macs(graph.tensors)
        live = [m.live_bytes for m in cost.timeline if m.label == op.name]
        others = tuple(makers.get(name, name) for name in op.inputs if name != before)
        found.append(
            Layer(
                name=op.name,
                kind=type(op).__name__,
                source="×".join(map(str, source.shape)),
                target="×".join(map(str, target.shape)),
                type=str(target.dtype),
                macs=macs,
                weight_bytes=sum(graph.tensors[name].bytes for name in op.parameters),
                output_bytes=target.bytes,
                live_bytes=max(live, default=None),
                besides=others,
                runs=runs.get(op.name, ""),
                cycles=cycles.get(op.name),
                share=(cycles.get(op.name, 0) if cycles else macs) / whole,
                widths=(source.bytes / largest, target.bytes / largest),
            )
        )
        before = op.output
    return tuple(found)


def forms(plan: Plan, clock: Clock) -> dict[str, str]:
    """How each operator runs: at once or in so many steps, alone or in turns with others, and
    whether it writes over its own input."""
    steps: Counter[str] = Counter()
    in_place = set()
    for event in clock.events:
        if isinstance(event.step, Compute):
            steps[event.step.op] += 1
            out = plan.buffer[event.step.out.buffer]
            for piece in event.step.ins:
                held = plan.buffer[piece.buffer]
                if held.role == "activation" and held.meets(out):
                    in_place.add(event.step.op)
    mixed = {name for each in clock.stretches if len(each.layers) > 1 for name in each.layers}
    return {
        name: ("at once" if count == 1 else f"in {count:,} steps")
        + (", in turns with others" if name in mixed else "")
        + (", over its input" if name in in_place else "")
        for name, count in steps.items()
    }
