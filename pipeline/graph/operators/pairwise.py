"""Functions of two tensors, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.graph.access import Term
from pipeline.graph.families import Pairwise, Scaled
from pipeline.graph.operator import Constants, Regions, Tensors, clipped_to
from pipeline.graph.reductions import Combine
from pipeline.graph.requant import FixedPoint, PowerOfTwo, overflow
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Add(Scaled):
    """The sum: TFLite's int8 ADD. The 4-bit format shifts operands instead."""

    combine: ClassVar[Combine] = "add"
    accumulates: ClassVar[bool] = True
    join: ClassVar[np.ufunc] = np.add

    left_shift: int = 20

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        return tuple(Term((operand,)) for operand in self.read(tensors))


@dataclass(frozen=True)
class Multiply(Pairwise):
    """The product, such as squeeze-excitation's: TFLite's int8 MUL."""

    combine: ClassVar[Combine] = "add"
    join: ClassVar[np.ufunc] = np.multiply


@dataclass(frozen=True)
class Maximum(Pairwise):
    """The greater one of one quantization, which stays: TFLite's int8 MAXIMUM."""

    join: ClassVar[np.ufunc] = np.maximum

    requant: FixedPoint = FixedPoint.of([1.0])


@dataclass(frozen=True)
class Minimum(Maximum):
    """The smaller one: TFLite's int8 MINIMUM."""

    join: ClassVar[np.ufunc] = np.minimum


@dataclass(frozen=True)
class SquaredDifference(Scaled):
    """The square of the difference: TFLite's int8 SQUARED_DIFFERENCE."""

    join: ClassVar[np.ufunc] = np.subtract

    left_shift: int = 7

    def joined(self, left: IntArray, right: IntArray) -> IntArray:
        return super().joined(left, right) ** 2


@dataclass(frozen=True)
class Order(Scaled):
    """1 where the first is greater, -1 where it is less, else 0: all that comparisons ask."""

    join: ClassVar[np.ufunc] = np.subtract

    left_shift: int = 8
    requant: FixedPoint = FixedPoint.of([1.0])

    def joined(self, left: IntArray, right: IntArray) -> IntArray:
        return np.sign(super().joined(left, right))


@dataclass(frozen=True)
class Prelu(Pairwise):
    """A rectifier with slopes, the second operand: TFLite's int8 PRELU. x >= 0 times ``requant``,
    others times their slope times ``below``."""

    below: FixedPoint = FixedPoint((0,), (0,))

    def joined(self, left: IntArray, right: IntArray) -> IntArray:
        return np.where(left >= 0, self.requant.apply(left), self.below.apply(left * right))

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        return overflow(PowerOfTwo(), self.partial_sums(tensors, constants))

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        return clipped_to(tensors[self.output], self.clip, acc)
