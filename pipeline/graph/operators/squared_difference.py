"""The square of the difference of two tensors, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pipeline.graph import broadcast
from pipeline.graph.families import Pairwise
from pipeline.graph.operator import BoxValues, Clip, Constants, Tensors
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class SquaredDifference(Pairwise):
    """TFLite's int8 SQUARED_DIFFERENCE: ``operands`` (activations or constants) shifted left by
    ``left_shift`` and multiplied by their own ``operand_requants``, then what is between them."""

    join: ClassVar[np.ufunc] = np.subtract

    combine: Literal["add", "maximum", "whole"] = "whole"
    operands: tuple[str, str] = ("", "")
    left_shift: int = 7
    operand_requants: tuple[FixedPoint, FixedPoint] = (FixedPoint((0,), (0,)),) * 2
    requant: FixedPoint = FixedPoint((0,), (0,))
    clip: Clip = None

    def scaled(self, place: int, values: IntArray) -> IntArray:
        return self.operand_requants[place].apply(values << self.left_shift)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        ends = (broadcast.extremes(name, tensors) for name in self.operands)
        first, second = (self.scaled(n, each) for n, each in enumerate(ends))
        return 0, int((np.subtract.outer(first, second) ** 2).max())

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        operands = self.terms(tensors)[0].operands
        values = (broadcast.values(each, tensors, out, regions) for each in operands)
        x, y = (self.scaled(n, each) for n, each in enumerate(values))
        return np.asarray((x - y) ** 2)
