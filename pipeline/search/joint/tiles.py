"""What may run tile by tile: stretches of operators between rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.search.joint.units import adds_rows

LONGEST = 10
"""Operators of a stretch."""


def stretches(graph: Graph, operators: Sequence[Operator]) -> Iterator[tuple[int, int]]:
    """The numbers of the first and the last operator of each stretch of images through windows,
    of which nothing but the last image is read elsewhere."""
    readers: dict[str, list[int]] = {graph.output: [len(operators)]}
    for number, op in enumerate(operators):
        for name in op.inputs:
            readers.setdefault(name, []).append(number)
    able = [tileable(op, graph) for op in operators]
    for first in range(len(operators)):
        until = first
        for last in range(first + 1, min(first + LONGEST, len(operators))):
            if not (able[last - 1] and able[last]):
                break
            until = max(until, *readers[operators[last - 1].output])
            if until == last:
                yield first, last


def tileable(op: Operator, graph: Graph) -> bool:
    """Its output and all that it reads are images, of which a tile needs a part."""
    if op.combine == "whole" or adds_rows(op, graph):
        return False
    images = (op.output, *op.inputs)
    if any(len(graph.tensors[name].shape) != 3 for name in images):
        return False
    windows = [
        operand.windows[:2] for operand in op.reads(graph.tensors) if operand.tensor in images
    ]
    return all(
        (down.axis, across.axis, down.divide, across.divide) == (0, 1, 1, 1)
        for down, across in windows
    )
