"""Reshapes that need not be: of the input, before a dense layer or another reshape, or to the same
shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Dense
from pipeline.graph.operators.placing import Reshape
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.passes._edit import edited


def apply(graph: Graph) -> Graph:
    """A dense layer reads its input whole, in any shape: its weights take that shape instead."""
    graph = _without_first(graph)
    origin: dict[str, str] = {}
    changed: list[Operator] = []
    tensors: dict[str, Tensor] = {}
    constants: dict[str, IntArray] = {}
    for op in graph.operators:
        if isinstance(op, Reshape):
            origin[op.output] = origin.get(op.inputs[0], op.inputs[0])
            op = replace(op, inputs=(origin[op.output],))
        elif isinstance(op, Dense) and op.inputs[0] in origin:
            source, weight = origin[op.inputs[0]], op.parameters[0]
            shape = (graph.tensors[weight].shape[0], *graph.tensors[source].shape)
            name = f"{weight}.{op.name}"  # other layers may share the weights
            tensors[name] = replace(graph.tensors[weight], name=name, shape=shape)
            constants[name] = np.reshape(graph.constants[weight], shape)
            op = replace(op, inputs=(source,), parameters=(name, *op.parameters[1:]))
        changed.append(op)
    if not origin:
        return graph
    folded = edited(graph, changed, tensors, constants)
    return edited(folded, _without_idle(folded))


def _without_first(graph: Graph) -> Graph:
    """An input takes the shape that the one operator which reads it gives it: values arrive in the
    same order."""
    for name in graph.inputs:
        readers = [op for op in graph.operators if name in op.inputs]
        first = readers[0] if len(readers) == 1 else None
        if isinstance(first, Reshape) and first.output not in graph.ends:
            source, names = replace(graph.tensors[name], shape=first.shape), {first.output: name}
            operators = [op.renamed(names) for op in graph.operators if op is not first]
            return _without_first(edited(graph, operators, {name: source}))
    return graph


def _without_idle(graph: Graph) -> list[Operator]:
    """Drop reshapes to the shape that their input has; the graph's outputs keep their names,
    and no operator comes to read one tensor twice."""
    same = {
        op.output: op.inputs[0]
        for op in graph.operators
        if isinstance(op, Reshape)
        and op.output not in graph.ends
        and graph.tensors[op.inputs[0]].shape == op.shape
    }
    for op in graph.operators:
        if len(set(op.renamed(same).inputs)) < len(set(op.inputs)):
            same = {name: origin for name, origin in same.items() if name not in op.inputs}
    return [op.renamed(same) for op in graph.operators if op.output not in same]
