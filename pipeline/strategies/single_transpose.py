"""Rows first, then columns: one change of direction, where it saves most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.search.chains.layer import Layer
from pipeline.search.chains.traversals import Peels, rows, single_transposes
from pipeline.strategies.chain import ChainStrategy


@dataclass(frozen=True)
class SingleTranspose(ChainStrategy):
    """The paper's single transpose strategy (section 3.4.3).

    The switch is found by trying all, because eq. 4's r* holds only for the contiguous layout.
    Among equals the latest is taken: least is transposed, or nothing. Outside the restricted case
    (``Layer.peelable``) it is row-major.
    """

    name: ClassVar[str] = "single_transpose"

    def traversal(self, layer: Layer, mirrored: bool = False) -> Peels:
        pixels = layer.outputs
        if not layer.peelable:
            return rows(pixels.rows, pixels.columns)
        options = single_transposes(pixels.rows, pixels.columns)
        return min(options, key=lambda peels: self.peak(layer, peels, mirrored))
