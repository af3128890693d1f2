"""Rows and columns in turn, always the side that costs least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.search.chains import contiguous
from pipeline.search.chains.arrangement import Traversal
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

    def ways(self, layers: Sequence[Layer]) -> list[list[Traversal]]:
        """Row-major wherever that fits the arena that the others need at least: it is fastest.

        Other orders have to make the whole chain's arena smaller: permuting takes time, and
        elements of mixed widths may fit into each other's places worse."""
        turned = contiguous.mirrored(len(layers))
        found = [self._options(*each) for each in zip(layers, turned, strict=True)]
        needed = max((min(peak for _, peak in options) for options in found), default=0)
        chosen = [
            (layer, next(peels for peels, peak in options if peak <= needed))
            for layer, options in zip(layers, found, strict=True)
        ]
        by_rows = [(layer, options[0][0]) for layer, options in zip(layers, found, strict=True)]
        return [by_rows] if by_rows == chosen else [by_rows, chosen]

    def traversal(self, layer: Layer, mirrored: bool = False) -> Peels:
        return min(self._options(layer, mirrored), key=lambda option: option[1])[0]

    def _options(self, layer: Layer, mirrored: bool) -> list[tuple[Peels, int]]:
        """Traversals and their peaks, the fastest first."""
        size = layer.outputs[:2]
        options = [herringbone(*size)] if layer.peelable else [rows(*size), columns(*size)]
        found = [(peels, self.peak(layer, peels, mirrored)) for peels in options]
        floor = max(layer.inputs.total, layer.outputs.total)
        if (
            self.layout == "slots"
            and not layer.peelable
            and len(layer.operands) == 1
            and len(layer.target.shape) == 3
            and min(peak for _, peak in found) > floor
        ):
            peels = least(layer)
            found.append((peels, self.peak(layer, peels)))
        return found
