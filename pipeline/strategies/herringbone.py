"""Rows and columns in turn, always the side that costs least: memory-optimal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.strategies.chain import ChainStrategy
from pipeline.strategies.layer import Layer
from pipeline.strategies.peels import Peels, herringbone, rows


@dataclass(frozen=True)
class Herringbone(ChainStrategy):
    """The paper's herringbone strategy (section 3.4.2).

    Optimal in the restricted case (``Layer.peelable``, claim 2), and row-major where channels do
    not grow (claim 1). Elsewhere it is row-major too: with same padding that was optimal wherever
    it was compared with all orders; with other kernels and strides the greedy peel is not.
    """

    name: ClassVar[str] = "herringbone"

    def traversal(self, layer: Layer) -> Peels:
        pixels = layer.outputs
        order = herringbone if layer.peelable else rows
        return order(pixels.rows, pixels.columns)
