"""Compute now what depends on constants only, and drop what nothing needs."""

from __future__ import annotations

from dataclasses import replace

from pipeline.graph.families import Pairwise
from pipeline.graph.graph import Graph
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.tensor import IntArray
from pipeline.passes._edit import consumers, edited


def apply(graph: Graph) -> Graph:
    """Fold operators on constants. Results that remain become parameters of functions of
    two tensors: no other operator takes a constant in place of an activation."""
    values = _known(graph)
    going, readers = set[str](), consumers(graph)
    for op in reversed(graph.operators):
        taken = all(
            reader.output in going or isinstance(reader, Pairwise) for reader in readers[op.output]
        )
        if op.output in values and op.output not in graph.ends and taken:
            going.add(op.output)
    left = [_reading(op, going) for op in graph.operators if op.output not in going]
    return edited(graph, left, constants={name: values[name] for name in going})


def _known(graph: Graph) -> dict[str, IntArray]:
    """Outputs that no activation changes."""
    found: dict[str, IntArray] = {}
    for op in graph.operators:
        if all(name in found for name in op.inputs):
            regions = {n: BoxValues(graph.tensors[n].box, found[n][None]) for n in op.inputs}
            regions |= {name: graph.constant(name) for name in op.parameters}
            box = graph.tensors[op.output].box
            acc = op.accumulate(graph.tensors, box, regions)
            found[op.output] = op.finish(graph.tensors, box, acc, regions)[0]
    return found


def _reading(op: Operator, constants: set[str]) -> Operator:
    """``op``, to which ``constants`` are parameters."""
    if not isinstance(op, Pairwise) or constants.isdisjoint(op.inputs):
        return op
    held = {*op.parameters, *constants}
    inputs = tuple(name for name in op.inputs if name not in constants)
    return replace(op, inputs=inputs, parameters=tuple(n for n in op.operands if n in held))
