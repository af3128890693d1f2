"""Demands of operators that slide a window on the kernels: a dense layer is one large window."""

from __future__ import annotations

from pipeline.codegen.int4.kernel import Combine, Window
from pipeline.codegen.int4.views import grid
from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import PowerOfTwo


def window(graph: Graph, op: Operator) -> Window:
    """Describe the window of an operator that ``int4.window`` is declared for."""
    assert isinstance(op, Weighted | Pool2d)
    combine: Combine = "mac"
    source, weights, bias, bits = graph.tensors[op.inputs[0]], None, None, 4
    if isinstance(op, Pool2d):
        kernel, combine = op.kernel, "sum" if isinstance(op, AveragePool2d) else "max"
    else:
        weights, bias = (graph.constants[name] for name in op.parameters)
        weights = weights if weights.ndim == 4 else weights.reshape(-1, *grid(source.shape))
        kernel = weights.shape[1], weights.shape[2]
        bits = graph.tensors[op.parameters[0]].dtype.bits
    requant = getattr(op, "requant", PowerOfTwo())
    assert isinstance(requant, PowerOfTwo)
    top, _, left, _ = padding = getattr(op, "padding", (0, 0, 0, 0))
    return Window(
        op, source, graph.tensors[op.output], combine, kernel,
        requant=requant,
        clip=op.clip,
        stride=getattr(op, "stride", (1, 1)),
        dilation=getattr(op, "dilation", (1, 1)),
        padding=(top, left),
        padded=any(padding),
        weights=weights,
        weight_bits=bits,
        bias=bias,
    )  # fmt: skip
