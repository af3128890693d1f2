"""Rows and columns in turn, always the side that costs least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.search.chains.arrangement import Traversal
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.traversals import Peels, columns, herringbone, rows
from pipeline.strategies.chain import ChainStrategy


@dataclass(frozen=True)
class Herringbone(ChainStrategy):
    """The paper's herringbone strategy (section 3.4.2).

    Optimal with square kernels, stride 1 and no padding: peeled where channels grow
    (``Layer.peelable``, claim 2), row-major where they do not (claim 1). Elsewhere it is row-major,
    or column-major where that makes the arena smaller, and nothing is claimed: other orders may
    need less than both.
    """

    name: ClassVar[str] = "herringbone"

    def ways(self, layers: Sequence[Layer]) -> list[list[Traversal]]:
        """Columns have to make the whole chain's arena smaller: permuting takes time, and elements
        of mixed widths may fit into each other's places worse."""
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
