"""Convolution: a window of products."""

from __future__ import annotations

from pipeline.codegen.int4.kernel import Window, shifts
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d


def window(graph: Graph, op: Conv2d) -> Window:
    weight = graph.tensors[op.parameters[0]]
    return Window(
        op,
        graph.tensors[op.inputs[0]],
        graph.tensors[op.output],
        "mac",
        kernel=(weight.shape[1], weight.shape[2]),
        requant=shifts(op.requant),
        clip=op.clip,
        stride=op.stride,
        dilation=op.dilation,
        padding=(op.padding[0], op.padding[2]),
        padded=any(op.padding),
        weights=graph.constants[op.parameters[0]],
        weight_bits=weight.dtype.bits,
        bias=graph.constants[op.parameters[1]],
    )
