"""Element-wise addition of two quantized tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.graph import broadcast
from pipeline.graph.access import Term
from pipeline.graph.families import Pairwise
from pipeline.graph.operator import BoxValues, Clip, Constants, Tensors
from pipeline.graph.requant import FixedPoint, Requant
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Add(Pairwise):
    """``operands`` (activations or constants) brought to one scale, added, and requantized.

    TFLite's int8 ADD: each operand is shifted left by ``left_shift``, multiplied by its own
    ``operand_requants``, and the sum by ``requant``. The 4-bit format shifts instead.
    """

    accumulates: ClassVar[bool] = True

    operands: tuple[str, str] = ("", "")
    left_shift: int = 20
    operand_requants: tuple[Requant, Requant] = (FixedPoint((0,), (0,)),) * 2
    requant: Requant = FixedPoint((0,), (0,))
    clip: Clip = None

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        rank = len(self.infer(tensors))
        return tuple(Term((broadcast.operand(name, tensors, rank),)) for name in self.operands)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        low = high = 0
        for name, requant in zip(self.operands, self.operand_requants, strict=True):
            ends = requant.apply(broadcast.extremes(name, tensors) << self.left_shift)
            low, high = low + min(0, int(ends.min())), high + max(0, int(ends.max()))
        return low, high

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        extents = [stop - start for start, stop in out]
        total = np.zeros((1, *extents), dtype=np.int64)
        for term, requant in zip(self.terms(tensors), self.operand_requants, strict=True):
            x = broadcast.values(term.operands[0], tensors, out, regions)
            total = total + requant.apply(x << self.left_shift)
        return total
