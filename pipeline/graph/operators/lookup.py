"""Any function of one 8-bit element, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.operator import BoxValues, Constants, Operator, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Lookup(Operator):
    """``table[q - minimum]`` for every stored integer q: sigmoid, tanh, hard-swish, leaky ReLU,
    a change of quantization. Entry 0 is for the input type's least integer."""

    element_wise: ClassVar[bool] = True

    combine: Literal["add", "maximum", "whole"] = "whole"
    table: tuple[int, ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source, target = tensors[self.inputs[0]], tensors.get(self.output)
        if len(self.table) != 1 << source.dtype.bits:
            raise ThimbleError(
                f"{self.name}: {source.dtype} needs a table of {1 << source.dtype.bits}, "
                f"not of {len(self.table)}"
            )
        if target is not None and not (
            target.dtype.minimum <= min(self.table) and max(self.table) <= target.dtype.maximum
        ):
            raise ThimbleError(f"{self.name}: its table has values outside {target.dtype}")
        return source.shape

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        windows = tuple(Window(d) for d in range(len(tensors[self.inputs[0]].shape)))
        return (Term((Operand(self.inputs[0], windows),)),)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        return min(self.table), max(self.table)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        source = tensors[self.inputs[0]]
        x = windowed(regions[source.name], out, source.zero_point)
        return np.array(self.table, dtype=np.int64)[x - source.dtype.minimum]
