"""Pooling of a tensor that lies in the arena."""

from __future__ import annotations

from pipeline.codegen.int4.kernel import Window, shifts
from pipeline.graph.graph import Graph
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import PowerOfTwo


def window(graph: Graph, op: Pool2d) -> Window:
    averages = isinstance(op, AveragePool2d)
    return Window(
        op,
        graph.tensors[op.inputs[0]],
        graph.tensors[op.output],
        "sum" if averages else "max",
        op.kernel,
        shifts(op.requant) if isinstance(op, AveragePool2d) else PowerOfTwo(),
        op.clip,
        stride=op.stride,
        padding=(op.padding[0], op.padding[2]),
        padded=any(op.padding),
    )
