"""Helpers that passes share: a graph with some of its parts replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.state import assigned_late
from pipeline.graph.tensor import IntArray, Tensor


def edited(
    graph: Graph,
    operators: Iterable[Operator],
    tensors: Mapping[str, Tensor] | None = None,
    constants: Mapping[str, IntArray] | None = None,
) -> Graph:
    """``graph`` with new ``operators``, and ``tensors`` and ``constants`` added or replaced.

    What the output does not need any more is left out.
    """
    kept, needed = list[Operator](), {*graph.ends, *graph.starts}
    for op in reversed(list(operators)):
        if op.output in needed:
            kept.insert(0, op)
            needed |= {*op.inputs, *op.parameters}
    every = {**graph.tensors, **(tensors or {})}
    values = {**graph.constants, **(constants or {})}
    return Graph(
        graph.name,
        {name: tensor for name, tensor in every.items() if name in needed},
        assigned_late(kept, graph.states),
        {name: array for name, array in values.items() if name in needed},
        graph.inputs,
        graph.outputs,
        states=graph.states,
        initial=graph.initial,
    )


def consumers(graph: Graph) -> dict[str, list[Operator]]:
    """Return the operators that read each activation."""
    found: dict[str, list[Operator]] = {name: [] for name in graph.tensors}
    for op in graph.operators:
        for name in dict.fromkeys(op.inputs):
            found[name].append(op)
    return found
