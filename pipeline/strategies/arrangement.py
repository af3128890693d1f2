"""What a layout decides: where every tensor of a chain lives, and the steps that fill them."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.plan.vocabulary import Buffer, Step
from pipeline.strategies.layer import Layer
from pipeline.strategies.peels import Peels

Traversal = tuple[Layer, Peels]
"""A layer and the order its output pixels are computed in."""


@dataclass(frozen=True)
class Arrangement:
    """
    Attributes:
        nibbles: the arena: no buffer of the chain reaches beyond it.
        buffers: the first one holds the chain's first tensor, row-major in one piece.
        beside: an address, a multiple of 8 nibbles, from which the first tensor leaves as many
            nibbles free as were asked for.
        steps: compute the chain from its first tensor.
        output: the buffer that holds the chain's last tensor.
    """

    nibbles: int
    buffers: tuple[Buffer, ...]
    beside: int
    steps: tuple[Step, ...]
    output: str


def fits_beside(layer: Layer, nibbles: int) -> bool:
    """Input and output fit whole: then order and overlap do not matter."""
    return layer.inputs.total + layer.outputs.total <= nibbles


def round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


WORD = 8
"""Nibbles of the widest accumulator."""
