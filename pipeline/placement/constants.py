"""Where the constants of a graph lie."""

from __future__ import annotations

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.placement.blocks import round_up
from pipeline.plan.vocabulary import Buffer, packed


def constants(graph: Graph, hardware: Hardware, arena_nibbles: int) -> tuple[Buffer, ...]:
    """Every constant, packed, one after the other, each from a byte on; above the arena where both
    share a memory."""
    memory, result = hardware.weight_memory, list[Buffer]()
    base = arena_nibbles if memory == hardware.activation_memory else 0
    for name in graph.constants:
        tensor = graph.tensors[name]
        bits = tensor.dtype.bits
        base = round_up(base, 2)
        address = packed(tensor.shape, bits, base)
        result.append(Buffer(name, name, memory, tensor.shape, bits, address, "constant"))
        base += tensor.size * (bits // 4)
    return tuple(result)
