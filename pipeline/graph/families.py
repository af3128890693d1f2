"""Hold what operators of a family have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph import broadcast
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.operator import (
    Clip,
    Constants,
    Operator,
    Regions,
    Tensors,
    clipped_to,
    product_sums,
    windowed,
)
from pipeline.graph.reductions import Combine
from pipeline.graph.requant import FixedPoint, Requant, overflow
from pipeline.graph.tensor import Box, IntArray


class OfOne(Operator):
    """Each output element is made of elements of one input, ``windows`` of it."""

    @abstractmethod
    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        """Return what of the input an output element is made of."""

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        return (Term((Operand(self.inputs[0], self.windows(tensors)),)),)

    def region(self, tensors: Tensors, out: Box) -> Box:
        """Return the unclipped box of the input that ``out`` is made of."""
        return Operand(self.inputs[0], self.windows(tensors)).region(out)

    def given(
        self, tensors: Tensors, out: Box, regions: Regions, fill: int | None = None
    ) -> IntArray:
        """Return its values, (n, extents); ``fill``, if not the zero point, where there are
        none."""
        zero = tensors[self.inputs[0]].zero_point
        region = self.region(tensors, out)
        return windowed(regions[self.inputs[0]], region, zero if fill is None else fill)


class Requantized(Operator):
    """Sums that end by a requantization and a fused activation."""

    clip: Clip
    requant: Requant

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        return overflow(self.requant, self.partial_sums(tensors, constants))

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        value = self.requant.part(*out[-1]).apply(acc)
        return clipped_to(tensors[self.output], self.clip, value)


class Weighted(Requantized):
    """Sums of products of one input with weights, ``parameters`` being (weights, bias). Weights
    count less their zero point."""

    combine: ClassVar[Combine] = "add"
    accumulates: ClassVar[bool] = True
    weighted: ClassVar[bool] = True
    channel_axis: ClassVar[int]

    def centred(self, tensors: Tensors, out: Box, regions: Regions) -> tuple[IntArray, IntArray]:
        """Return what ``out`` reads of the input, (n, extents), and weights, less zero points."""
        image, weights = (term for each in self.terms(tensors) for term in each.operands)
        x, w = (broadcast.centred(each, tensors, out, regions) for each in (image, weights))
        return x, w[0]

    def completion(self, tensors: Tensors) -> tuple[Operand, ...]:
        return (Operand(self.parameters[1], (Window(self.channel_axis),)),)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        weights = constants[self.parameters[0]] - tensors[self.parameters[0]].zero_point
        sums = product_sums(weights, tensors[self.inputs[0]])
        return int(sums.min()), int(sums.max())

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        sums = self.partial_sums(tensors, constants)
        return overflow(self.requant, sums, constants[self.parameters[1]])

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        bias = windowed(regions[self.parameters[1]], out[-1:], 0)
        value = self.requant.part(*out[-1]).apply(acc, bias)
        return clipped_to(tensors[self.output], self.clip, value)


class Sliding(Operator):
    """A window over rows and columns of an image; ``padding`` is (top, bottom, left, right)."""

    slides: ClassVar[bool] = True

    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]

    @abstractmethod
    def window(self, tensors: Tensors) -> tuple[int, int]:
        """Return its rows and columns."""

    def pixels(self, tensors: Tensors) -> tuple[Window, Window]:
        """Return what an output element is made of, as rows and as columns."""
        fields = zip(
            self.window(tensors), self.stride, self.padding[::2], self.dilation, strict=True
        )
        rows, columns = (
            Window(axis, taps, stride, -before, apart)
            for axis, (taps, stride, before, apart) in enumerate(fields)
        )
        return rows, columns

    def extents(self, tensors: Tensors) -> tuple[int, int]:
        """Rows and columns of the output; raises ThimbleError when a window is too large."""
        shape = tensors[self.inputs[0]].shape[:2]
        fields = zip(shape, self.pixels(tensors), self.padding[1::2], strict=True)
        rows, columns = (
            (extent + after - read.span(0, 1)[1]) // read.stride + 1
            for extent, read, after in fields
        )
        if min(rows, columns) < 1:
            taps = "x".join(map(str, self.window(tensors)))
            raise ThimbleError(f"{self.name}: a {taps} kernel is larger than {shape[0]}x{shape[1]}")
        return rows, columns

    def taps(
        self, x: IntArray, size: tuple[int, int], window: Sequence[int]
    ) -> Iterator[tuple[tuple[int, int], IntArray]]:
        """Yield each tap, and the elements of ``x`` that it reads for ``size`` outputs: (n, rows,
        columns, channels)."""
        for tap in np.ndindex(*window):
            fields = zip(tap, size, self.stride, self.dilation, strict=True)
            yield tap, x[:, *(
                slice(at * apart, at * apart + (count - 1) * stride + 1, stride)
                for at, count, stride, apart in fields
            )]  # fmt: skip


def products(x: IntArray, weights: IntArray, outs: tuple[int, int], count: int) -> IntArray:
    """(…, channels) * (outs, depth) -> (…, outs): those from ``outs[0]`` on, ``count`` a group, of
    the input channels of their groups.

    Computed in float64, which is exact below 2**53 and much faster than a product of integers.
    """
    (first, last), depth = outs, weights.shape[1]
    result = np.zeros((*x.shape[:-1], last - first), np.int64)
    for number, group in enumerate(range(first // count, -(-last // count))):
        part = slice(max(0, group * count - first), (group + 1) * count - first)
        taken = x[..., number * depth : (number + 1) * depth].astype(np.float64)
        result[..., part] = taken @ weights[part].T.astype(np.float64)
    return result


@dataclass(frozen=True)
class Pairwise(Requantized):
    """Elements of two ``operands`` (activations or constants), broadcast: ``join`` of both, which
    rises or falls with either, then requantized."""

    element_wise: ClassVar[bool] = True
    reading: ClassVar[tuple[str, ...]] = ("inputs", "parameters", "operands")
    join: ClassVar[np.ufunc]

    operands: tuple[str, str] = ("", "")
    requant: Requant = FixedPoint((0,), (0,))
    clip: Clip = None

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        return broadcast.shape_of(self.name, self.operands, tensors)

    def read(self, tensors: Tensors) -> tuple[Operand, ...]:
        """Return what is read of both operands."""
        rank = len(self.infer(tensors))
        return tuple(broadcast.operand(name, tensors, rank) for name in self.operands)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        return (Term(self.read(tensors)),)

    def macs(self, tensors: Tensors) -> int:
        """Counted as no work, as published figures do."""
        return 0

    def joined(self, left: IntArray, right: IntArray) -> IntArray:
        """The function itself, of stored integers less their zero points, which broadcast."""
        return np.asarray(self.join(left, right))

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        first, second = (broadcast.extremes(name, tensors) for name in self.operands)
        ends = self.joined(first[:, None], second)
        return min(0, int(ends.min())), max(0, int(ends.max()))

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        operands = self.read(tensors)
        return self.joined(*(broadcast.values(each, tensors, out, regions) for each in operands))


@dataclass(frozen=True)
class Scaled(Pairwise):
    """Operands with scales of their own: each is shifted left by ``left_shift`` and multiplied by
    its own of ``operand_requants`` first."""

    left_shift: int = 0
    operand_requants: tuple[Requant, Requant] = (FixedPoint((0,), (0,)),) * 2

    def joined(self, left: IntArray, right: IntArray) -> IntArray:
        pairs = zip(self.operand_requants, (left, right), strict=True)
        return super().joined(*(requant.apply(x << self.left_shift) for requant, x in pairs))


class Placing(Operator):
    """Each output element is an input element as it is, or padding of the real value 0."""

    combine: ClassVar[Combine] = "add"

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        target = tensors[self.output]
        low, high = (e - target.zero_point for e in (target.dtype.minimum, target.dtype.maximum))
        return min(0, low), max(0, high)

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        return acc + tensors[self.output].zero_point
