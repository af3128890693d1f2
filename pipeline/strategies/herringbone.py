"""Rows and columns in turn, always the side that costs least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.search.chains.arrangement import Traversal
from pipeline.search.chains.flow import Flow
from pipeline.search.chains.items import Item
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.least import least
from pipeline.search.chains.traversals import Peels, columns, herringbone, rows
from pipeline.strategies.chain import ChainStrategy


@dataclass(frozen=True)
class Herringbone(ChainStrategy):
    """The paper's herringbone strategy (section 3.4.2), and an exact search beyond it.

    Optimal with square kernels, stride 1 and no padding: peeled where channels grow
    (``Layer.peelable``, claim 2), row-major where they do not (claim 1). Elsewhere ``least`` finds
    the best order of rows and columns off all four sides, which the paper's greedy rule
    (equations 16 and 23) does not. Tensors in one piece go by rows or by columns there.
    """

    name: ClassVar[str] = "herringbone"

    def orders(self, flow: Flow, number: int, tight: bool) -> Iterator[Item]:
        """Row-major wherever that fits the arena that others need at least: it is fastest. Channel
        by channel, where each is made of one, only where memory is ``tight``: no fast kernel does
        that."""
        layer = Layer(flow.operators[number], flow.tensors)
        size = layer.outputs[:2]
        if layer.op.slides and layer.peelable:
            yield (first := Item.of(flow, number, herringbone(*size)))
        else:
            yield (first := Item.of(flow, number, rows(*size)))
        if not layer.op.slides or len(layer.target.shape) != 3:
            return
        if not layer.peelable:
            yield Item.of(flow, number, columns(*size))
            yield Item.of(flow, number, least(layer))
        if first.by_byte:
            yield from (Item.of(flow, number, least(layer, half=half)) for half in (0, 1))
        if tight and layer.groups > 1:
            for peels in (rows(*size), columns(*size), least(layer, layer.groups)):
                yield Item.of(flow, number, peels, layer.groups)

    def ways(self, layers: Sequence[Layer]) -> list[list[Traversal]]:
        """Columns have to make the whole chain's arena smaller: permuting takes time."""
        (found,) = super().ways(layers)
        by_rows = [
            (layer, peels if layer.peelable else rows(*layer.outputs[:2])) for layer, peels in found
        ]
        return [by_rows] if by_rows == found else [by_rows, found]

    def traversal(self, layer: Layer, mirrored: bool = False) -> Peels:
        height, width = layer.outputs[:2]
        if layer.peelable:
            return herringbone(height, width)
        options = rows(height, width), columns(height, width)
        return min(options, key=lambda peels: self.peak(layer, peels, mirrored))
