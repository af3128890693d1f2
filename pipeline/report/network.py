"""The network as layers: shapes, work, bytes, and how the plan runs each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.plan.cost import Cost
from pipeline.plan.forms import forms
from pipeline.plan.vocabulary import Plan


def layers(
    graph: Graph, plan: Plan, cost: Cost, schedule: Mapping[str, Any], metrics: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the layers in the graph's order; ``schedule``, ``metrics``: content of these files.

    Of each: ``besides``, the layers before the last one whose outputs it also reads; ``runs``, how
    the plan runs it, in words; ``live_bytes``, the most in use while it runs; ``cycles`` and
    ``share``, measured, and its part of the whole, or of the work where no cycles are known;
    ``modelled``, cycles by what kernels declare; ``widths`` of its input and its output, to draw,
    as parts of the largest tensor.
    """
    cycles = {row["layer"]: row["cycles"] for row in metrics.get("layers", ())}
    whole = sum(cycles.values()) or graph.macs or 1
    largest = max(graph.tensors[op.output].bytes for op in graph.operators)
    largest = max(largest, *(graph.tensors[name].bytes for name in graph.inputs))
    makers = {op.output: op.name for op in graph.operators}
    runs = forms(plan)
    modelled = {row["layer"]: row.get("modelled_cycles") for row in schedule.get("forms", ())}
    found, before = [], graph.inputs[0]
    for op in graph.operators:
        source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
        macs = op.macs(graph.tensors)
        live = [m.live_bytes for m in cost.timeline if m.label == op.name]
        others = tuple(makers.get(name, name) for name in op.inputs if name != before)
        found.append(
            {
                "name": op.name,
                "kind": type(op).__name__,
                "source": "×".join(map(str, source.shape)),
                "target": "×".join(map(str, target.shape)),
                "type": str(target.dtype),
                "macs": macs,
                "weight_bytes": sum(graph.tensors[name].bytes for name in op.parameters),
                "output_bytes": target.bytes,
                "live_bytes": max(live, default=None),
                "besides": others,
                "runs": runs[op.name].said if op.name in runs else "",
                "cycles": cycles.get(op.name),
                "modelled": modelled.get(op.name),
                "share": (cycles.get(op.name, 0) if cycles else macs) / whole,
                "widths": (source.bytes / largest, target.bytes / largest),
            }
        )
        before = op.output
    return found
