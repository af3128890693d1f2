"""Hold what operators of a family have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.graph import broadcast
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.operator import (
    BoxValues,
    Clip,
    Constants,
    Operator,
    Tensors,
    clipped_to,
    product_sums,
    windowed,
)
from pipeline.graph.requant import Requant, overflow
from pipeline.graph.tensor import Box, IntArray


class Weighted(Operator):
    """Sums of products of one input with weights, ``parameters`` being (weights, bias). Weights
    count less their zero point."""

    accumulates: ClassVar[bool] = True
    weighted: ClassVar[bool] = True
    slides: ClassVar[bool] = True
    channel_axis: ClassVar[int]

    clip: Clip
    requant: Requant

    def completion(self, tensors: Tensors) -> tuple[Operand, ...]:
        return (Operand(self.parameters[1], (Window(self.channel_axis),)),)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        weights = constants[self.parameters[0]] - tensors[self.parameters[0]].zero_point
        sums = product_sums(weights, tensors[self.inputs[0]])
        return int(sums.min()), int(sums.max())

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        sums = self.partial_sums(tensors, constants)
        return overflow(self.requant, sums, constants[self.parameters[1]])

    def finish(
        self, tensors: Tensors, out: Box, acc: IntArray, regions: Mapping[str, BoxValues]
    ) -> IntArray:
        bias = windowed(regions[self.parameters[1]], out[-1:], 0)
        value = self.requant.part(*out[-1]).apply(acc, bias)
        return clipped_to(tensors[self.output], self.clip, value)


class Pairwise(Operator):
    """Elements of two ``operands`` (activations or constants), broadcast: ``join`` of both, which
    rises or falls with either, then requantized."""

    element_wise: ClassVar[bool] = True
    reading: ClassVar[tuple[str, ...]] = ("inputs", "parameters", "operands")
    join: ClassVar[np.ufunc]

    operands: tuple[str, str]
    requant: Requant
    clip: Clip

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        return broadcast.shape_of(self.name, self.operands, tensors)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        rank = len(self.infer(tensors))
        return (Term(tuple(broadcast.operand(name, tensors, rank) for name in self.operands)),)

    def macs(self, tensors: Tensors) -> int:
        """Counted as no work, as published figures do."""
        return 0

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        first, second = (broadcast.extremes(name, tensors) for name in self.operands)
        ends = self.join.outer(first, second)
        return min(0, int(ends.min())), max(0, int(ends.max()))

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        operands = self.terms(tensors)[0].operands
        x, y = (broadcast.values(each, tensors, out, regions) for each in operands)
        return np.asarray(self.join(x, y))

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        return overflow(self.requant, self.partial_sums(tensors, constants))

    def finish(
        self, tensors: Tensors, out: Box, acc: IntArray, regions: Mapping[str, BoxValues]
    ) -> IntArray:
        return clipped_to(tensors[self.output], self.clip, self.requant.apply(acc))


class Placing(Operator):
    """Each output element is an input element as it is, or padding of the real value 0."""

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        target = tensors[self.output]
        low, high = (e - target.zero_point for e in (target.dtype.minimum, target.dtype.maximum))
        return min(0, low), max(0, high)

    def finish(
        self, tensors: Tensors, out: Box, acc: IntArray, regions: Mapping[str, BoxValues]
    ) -> IntArray:
        return acc + tensors[self.output].zero_point
