"""What a layout decides: where every tensor of a chain lives, and the steps that fill them."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.traversed import Run, Turn
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.traversals import Peels

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
        runs: compute the chain from its first tensor; the last makes its last tensor.
    """

    nibbles: int
    buffers: tuple[Buffer, ...]
    beside: int
    runs: tuple[Run | Turn, ...]


def fits_beside(layer: Layer, nibbles: int) -> bool:
    """Input and output fit whole: then order and overlap do not matter."""
    return layer.inputs.total + layer.outputs.total <= nibbles
