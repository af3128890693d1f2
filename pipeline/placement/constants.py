"""Placement of a graph's constants, and the tensors that lie on a card."""

from collections.abc import Collection, Iterable

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware, Memory
from pipeline.placement.blocks import round_up
from pipeline.plan.vocabulary import Buffer, packed


def constants(
    graph: Graph, hardware: Hardware, arena_nibbles: int, but: Collection[str] = ()
) -> tuple[Buffer, ...]:
    """Return every constant, ``but`` those that lie elsewhere, packed, one after the other, each
    from a byte on; above the arena where both share a memory."""
    memory = hardware.weight_memory
    base = arena_nibbles if memory == hardware.activation_memory else 0
    names = (name for name in graph.constants if name not in but)
    return _in_a_row(names, graph, memory, round_up(base, 2), 2)


def stored(
    tensors: Iterable[str], graph: Graph, memory: Memory, frames: int = 1
) -> tuple[Buffer, ...]:
    """``tensors`` whole, each from a granule of ``memory`` on; activations once for each frame."""
    return _in_a_row(tensors, graph, memory.name, 0, 2 * memory.granule_bytes, frames)


def _in_a_row(
    names: Iterable[str], graph: Graph, memory: str, base: int, granule: int, frames: int = 1
) -> tuple[Buffer, ...]:
    result = list[Buffer]()
    for name in names:
        tensor, fixed = graph.tensors[name], name in graph.constants
        shape, bits, copies = tensor.shape, tensor.dtype.bits, 1 if fixed else frames
        size, place = round_up(tensor.nibbles, granule), packed(shape, bits, base)
        result.append(
            Buffer(
                name, name, memory, shape, bits, place, "constant" if fixed else "activation",
                copies=copies, copy_stride=size if copies > 1 else 0,
            )
        )  # fmt: skip
        base += size * copies
    return tuple(result)
