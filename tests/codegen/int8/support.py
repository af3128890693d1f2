"""Plans by a planner that cannot be wrong, for generated C that runs natively; and the small
network whose generated C is kept as golden files."""

from __future__ import annotations

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan.vocabulary import Buffer, Compute, Plan, Track, packed, whole
from tests.codegen.support import DEVICE, Native, agrees, frames, host
from tests.graphs import Net

__all__ = ["DEVICE", "Native", "agrees", "apart", "frames", "host"]


def apart(graph: Graph, sram_bytes: int = 1 << 24) -> Plan:
    """Every tensor at an address of its own, operators in the graph's order."""
    buffers, top = [], 0
    for name, tensor in graph.tensors.items():
        if name not in graph.constants:
            layout = packed(tensor.shape, tensor.dtype.bits, top)
            buffers.append(Buffer(name, name, "sram", tensor.shape, tensor.dtype.bits, layout))
            top += -(-tensor.size * tensor.dtype.bits // 32) * 8
    fixed = constants(graph)
    by_name = {buffer.name: buffer for buffer in (*buffers, *fixed)}
    steps = tuple(
        Compute(
            op.name,
            whole(by_name[op.output]),
            tuple(whole(by_name[name]) for name in dict.fromkeys((*op.inputs, *op.parameters))),
        )
        for op in graph.operators
    )
    memories = (Memory("sram", sram_bytes), Memory("flash", 1 << 26, "rom"))
    resident = (graph.input, *(buffer.name for buffer in fixed))
    return Plan(
        graph.name, "apart", memories, (*buffers, *fixed), (Track("cpu", steps),), resident,
        graph.output,
    )  # fmt: skip


def constants(graph: Graph) -> list[Buffer]:
    fixed, top = [], 0
    for name in graph.constants:
        tensor = graph.tensors[name]
        layout = packed(tensor.shape, tensor.dtype.bits, top)
        fixed.append(
            Buffer(name, name, "flash", tensor.shape, tensor.dtype.bits, layout, "constant")
        )
        top += -(-tensor.size * tensor.dtype.bits // 8) * 2
    return fixed


def network() -> Graph:
    """A residual block, depthwise and pointwise convolution, pooling, a classifier."""
    net = Net((8, 8, 3), np.random.default_rng(1), name="small")
    start = net.conv(4, stride=(2, 2))
    net.plus(net.conv(4), start)
    net.depthwise()
    net.conv(6, (1, 1))
    net.mean((4, 4))
    net.dense(3)
    net.softmax()
    return net.graph()
