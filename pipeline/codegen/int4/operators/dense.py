"""Fully connected layer: a window as large as its input."""

from __future__ import annotations

from pipeline.codegen.int4.kernel import Window, shifts
from pipeline.codegen.int4.views import grid
from pipeline.graph.graph import Graph
from pipeline.graph.operators.dense import Dense


def window(graph: Graph, op: Dense) -> Window:
    source, weight = graph.tensors[op.inputs[0]], graph.tensors[op.parameters[0]]
    rows, columns, depth = grid(source.shape)
    return Window(
        op,
        source,
        graph.tensors[op.output],
        "mac",
        (rows, columns),
        shifts(op.requant),
        op.clip,
        weights=graph.constants[op.parameters[0]].reshape(-1, rows, columns, depth),
        weight_bits=weight.dtype.bits,
        bias=graph.constants[op.parameters[1]],
    )
