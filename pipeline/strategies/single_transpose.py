"""Rows first, then columns: one change of direction, where it saves most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.search.chains.flow import Flow
from pipeline.search.chains.items import Item
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.least import turned_once
from pipeline.search.chains.traversals import Peels, rows, single_transpose, single_transposes
from pipeline.strategies.chain import ChainStrategy


@dataclass(frozen=True)
class SingleTranspose(ChainStrategy):
    """The paper's single transpose strategy (section 3.4.3).

    The switch is found by trying all, because eq. 4's r* holds only for the contiguous layout.
    Among equals the latest is taken: least is transposed, or nothing. Outside the restricted case
    (``Layer.peelable``) it is row-major where that fits what others need, or where tensors are in
    one piece.
    """

    name: ClassVar[str] = "single_transpose"

    def orders(self, flow: Flow, number: int, tight: bool) -> Iterator[Item]:
        layer = Layer(flow.operators[number], flow.tensors)
        yield from super().orders(flow, number, tight)
        if layer.op.slides and not layer.peelable and len(layer.target.shape) == 3:
            yield Item.of(flow, number, self._best(layer))

    def traversal(self, layer: Layer, mirrored: bool = False) -> Peels:
        if not layer.peelable:
            return rows(*layer.outputs[:2])
        return self._best(layer, mirrored)

    def _best(self, layer: Layer, mirrored: bool = False) -> Peels:
        height, width = layer.outputs[:2]
        if self.layout == "slots":
            peaks = turned_once(layer, rows_first=width <= height)
            return single_transpose(height, width, len(peaks) - 1 - int(np.argmin(peaks[::-1])))
        options = single_transposes(height, width)
        return min(options, key=lambda peels: self.peak(layer, peels, mirrored))
