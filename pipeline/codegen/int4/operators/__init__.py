"""One file an operator: what it asks of the kernels."""

from __future__ import annotations

from pipeline.codegen.int4.kernel import Window
from pipeline.codegen.int4.operators import conv2d, dense, pool2d
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.pool2d import Pool2d


def window(graph: Graph, op: Operator) -> Window:
    """Of an operator that ``int4.window`` is declared for."""
    match op:
        case Conv2d():
            return conv2d.window(graph, op)
        case Dense():
            return dense.window(graph, op)
    assert isinstance(op, Pool2d)
    return pool2d.window(graph, op)
