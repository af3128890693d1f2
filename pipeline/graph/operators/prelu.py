"""A rectifier that lets some of what is negative through: as much as a slope of its own says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pipeline.graph import broadcast
from pipeline.graph.access import Term
from pipeline.graph.operator import BoxValues, Clip, Constants, Operator, Tensors, clipped_to
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Prelu(Operator):
    """TFLite's int8 PRELU: x >= 0 times ``requant``, others times their slope times ``below``.

    The one parameter holds the slopes: they broadcast to the input, as one a channel does.
    """

    element_wise: ClassVar[bool] = True

    combine: Literal["add", "maximum", "whole"] = "whole"
    requant: FixedPoint = FixedPoint((0,), (0,))
    below: FixedPoint = FixedPoint((0,), (0,))
    clip: Clip = None

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        return broadcast.shape_of(self.name, (*self.inputs, *self.parameters), tensors)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        names, rank = (*self.inputs, *self.parameters), len(self.infer(tensors))
        x, slope = (broadcast.operand(name, tensors, rank) for name in names)
        return (Term((x, slope)),)

    def macs(self, tensors: Tensors) -> int:
        """Counted as no work, as other activation functions are."""
        return 0

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        x, slope = (broadcast.extremes(n, tensors) for n in (*self.inputs, *self.parameters))
        ends = self._scaled(x[:, None], slope[None, :])
        return min(0, int(ends.min())), max(0, int(ends.max()))

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        x, slope = self.terms(tensors)[0].operands
        values = broadcast.values(x, tensors, out, regions)
        return self._scaled(values, broadcast.values(slope, tensors, out, regions))

    def _scaled(self, x: IntArray, slope: IntArray) -> IntArray:
        return np.where(x >= 0, self.requant.apply(x), self.below.apply(x * slope))

    def finish(
        self, tensors: Tensors, out: Box, acc: IntArray, regions: Mapping[str, BoxValues]
    ) -> IntArray:
        return clipped_to(tensors[self.output], self.clip, acc)
