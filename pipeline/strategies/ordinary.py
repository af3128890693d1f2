"""Input and output both whole and apart, as most inference engines do. Alias ``naive``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.strategies.chain import ChainStrategy
from pipeline.strategies.layer import Layer
from pipeline.strategies.peels import Peels, rows


@dataclass(frozen=True)
class Ordinary(ChainStrategy):
    """Row-major, nothing in place: a layer needs its input and its output."""

    name: ClassVar[str] = "ordinary"
    in_place: ClassVar[bool] = False

    def traversal(self, layer: Layer) -> Peels:
        return rows(layer.outputs.rows, layer.outputs.columns)
