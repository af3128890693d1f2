"""Buffers: whole tensors on the card, windows of them in SRAM."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware
from pipeline.placement.blocks import round_up
from pipeline.plan.vocabulary import Affine, Buffer, packed
from pipeline.strategies.swap.layers import Layer

SRAM, CARD = "sram", "card"


def window(
    name: str,
    tensor: Tensor,
    base_bytes: int,
    sizes: Sequence[int],
    bits: int = 8,
    copies: int = 1,
    copy_bytes: int = 0,
) -> Buffer:
    """A place for ``sizes`` neighbouring indices of each axis, wherever they begin: an index lies
    at its remainder, so that a window that moves on needs no other place."""
    rings = tuple(0 if n >= extent else n for n, extent in zip(sizes, tensor.shape, strict=True))
    held = tuple(min(n, extent) for n, extent in zip(sizes, tensor.shape, strict=True))
    strides = tuple(bits // 4 * prod(held[d + 1 :]) for d in range(len(held)))
    place = Affine(2 * base_bytes, strides, rings)
    return Buffer(
        name, tensor.name, SRAM, tensor.shape, bits, place,
        "activation" if bits == tensor.dtype.bits else "accumulator",
        copies=copies, copy_stride=2 * copy_bytes if copies > 1 else 0,
    )  # fmt: skip


def on_card(
    layers: Sequence[Layer], graph: Graph, frames: int, block_bytes: int
) -> tuple[list[Buffer], list[Buffer]]:
    """The feature maps, a copy for each frame, and the weights; all from a block on."""
    maps, weights, base = list[Buffer](), list[Buffer](), 0
    block = 2 * block_bytes
    for name in (layers[0].source, *(layer.target for layer in layers)):
        tensor = graph.tensors[name]
        size, place = round_up(2 * tensor.size, block), packed(tensor.shape, 8, base)
        stride = size if frames > 1 else 0
        maps.append(Buffer(name, name, CARD, tensor.shape, 8, place, copies=frames,
                           copy_stride=stride))  # fmt: skip
        base += size * frames
    for name in dict.fromkeys(layer.weight for layer in layers if layer.weight):
        tensor = graph.tensors[name]
        place = packed(tensor.shape, 8, base)
        weights.append(Buffer(name, name, CARD, tensor.shape, 8, place, "constant"))
        base += round_up(2 * tensor.size, block)
    return maps, weights


def biases(layers: Sequence[Layer], graph: Graph, hardware: Hardware) -> list[Buffer]:
    """They stay in the chip's program memory."""
    result, base = list[Buffer](), 0
    rom = next(memory.name for memory in hardware.memories if memory.kind == "rom")
    for name in dict.fromkeys(layer.bias for layer in layers if layer.bias):
        tensor = graph.tensors[name]
        bits, place = tensor.dtype.bits, packed(tensor.shape, tensor.dtype.bits, base)
        result.append(Buffer(name, name, rom, tensor.shape, bits, place, "constant"))
        base += round_up(tensor.size * bits // 4, 8)
    return result
