"""Operators of a float graph that weigh or compare many elements for each that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.importers.deferred import torch
from pipeline.importers.float_graph import Node, Shape, checked_size
from pipeline.importers.float_nodes import Floats, tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Resized(Node):
    """(h, w, c) -> (h', w', c): ``rows`` (h', h) and ``columns`` (w', w) weigh the old ones."""

    rows: Floats
    columns: Floats
    keeps: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        (height, rows), (width, columns) = self.rows.shape, self.columns.shape
        if len(shapes[0]) != 3 or shapes[0][:2] != (rows, columns):
            raise self.refuse(f"resizes images of {rows}x{columns}, not {list(shapes[0])}")
        return checked_size(self.where, (height, width, shapes[0][2]))

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        x = values[0]
        rows, columns = tensor(self.rows, x), tensor(self.columns, x)
        return torch.einsum("ab,nbcd,ec->naed", rows, x, columns)
