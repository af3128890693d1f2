"""Functions of one 8-bit activation that several operators compute, such as a value times its
sigmoid: one table."""

from __future__ import annotations

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.tensor import IntArray
from pipeline.passes._edit import consumers, edited


def apply(graph: Graph) -> Graph:
    """Look up what ends a chain of functions that nothing else reads, until there is none."""
    folded = _once(graph)
    return folded if folded.operators == graph.operators else apply(folded)


def _once(graph: Graph) -> Graph:
    readers, changed = consumers(graph), list[Operator]()
    known: dict[str, tuple[str, IntArray]] = {}
    for op in graph.operators:
        own = [n for n in known if readers[n] == [op] and n not in graph.ends and n in op.inputs]
        sources = {known[name][0] if name in own else name for name in op.inputs}
        if len(sources) == 1 and _plain(graph, op):
            source = graph.tensors[sources.pop()]
            every = np.arange(source.dtype.minimum, source.dtype.maximum + 1)
            given = {n: known[n][1] if n in own else every for n in op.inputs}
            known[op.output] = source.name, _values(graph, op, given)
            if own:
                table = tuple(known[op.output][1].tolist())
                op = Lookup(op.name, (source.name,), op.output, table=table)
        changed.append(op)
    return edited(graph, changed)


def _plain(graph: Graph, op: Operator) -> bool:
    """Check whether ``op`` does the same to each element of its 8-bit inputs, one by one."""
    tensors = [graph.tensors[name] for name in (op.output, *op.inputs)]
    alike = {(each.shape, each.dtype.bits) for each in tensors} == {(tensors[0].shape, 8)}
    constants = [graph.constants[name] for name in op.parameters]
    return op.element_wise and alike and all((c == c.flat[0]).all() for c in constants)


def _values(graph: Graph, op: Operator, given: dict[str, IntArray]) -> IntArray:
    """Return the results of ``op`` for elements of these values, its input's all in turn."""
    box = tuple((0, 1) for _ in graph.tensors[op.output].shape)
    regions = {n: BoxValues(box, v.reshape(-1, *[1] * len(box))) for n, v in given.items()}
    regions |= {name: graph.constant(name) for name in op.parameters}
    acc = op.accumulate(graph.tensors, box, regions)
    return op.finish(graph.tensors, box, acc, regions).reshape(-1)
