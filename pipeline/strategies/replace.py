"""Row-major in place: outputs take the place of inputs that no later output reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.search.chains.layer import Layer
from pipeline.search.chains.traversals import Peels, rows
from pipeline.strategies.chain import ChainStrategy


@dataclass(frozen=True)
class Replace(ChainStrategy):
    """The paper's replace strategy (section 3.4.1)."""

    name: ClassVar[str] = "replace"

    def traversal(self, layer: Layer, mirrored: bool = False) -> Peels:
        return rows(layer.outputs.rows, layer.outputs.columns)
