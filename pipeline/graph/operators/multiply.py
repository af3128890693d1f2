"""Element-wise product of two quantized tensors, such as squeeze-excitation's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.graph import broadcast
from pipeline.graph.access import Term
from pipeline.graph.families import Pairwise
from pipeline.graph.operator import BoxValues, Clip, Constants, Tensors
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Multiply(Pairwise):
    """``operands`` (activations or constants) multiplied, then requantized: TFLite's int8 MUL."""

    operands: tuple[str, str] = ("", "")
    requant: FixedPoint = FixedPoint((0,), (0,))
    clip: Clip = None

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        rank = len(self.infer(tensors))
        first, second = (broadcast.operand(name, tensors, rank) for name in self.operands)
        return (Term((first, second)),)

    def macs(self, tensors: Tensors) -> int:
        """Counted as no work, as published figures do."""
        return 0

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        first, second = (broadcast.extremes(name, tensors) for name in self.operands)
        products = np.outer(first, second)
        return min(0, int(products.min())), max(0, int(products.max()))

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        first, second = self.terms(tensors)[0].operands
        x = broadcast.values(first, tensors, out, regions)
        return x * broadcast.values(second, tensors, out, regions)
