"""Compute now what depends on constants only, and drop what nothing needs."""

from __future__ import annotations

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Region
from pipeline.graph.tensor import IntArray
from pipeline.passes._edit import edited


def apply(graph: Graph) -> Graph:
    constants: dict[str, IntArray] = dict(graph.constants)
    left = list[Operator]()
    for op in graph.operators:
        if op.output == graph.output or not all(name in constants for name in op.inputs):
            left.append(op)
            continue
        names = (*op.inputs, *op.parameters)
        regions = {name: Region(graph.tensors[name].box, constants[name][None]) for name in names}
        box = graph.tensors[op.output].box
        acc = op.accumulate(graph.tensors, box, regions)
        constants[op.output] = op.finish(graph.tensors, box, acc, regions)[0]
    return edited(graph, left, constants=constants)
