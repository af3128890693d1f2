"""Explicit padding with the real value 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.operator import BoxValues, Constants, Operator, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Pad(Operator):
    """``padding`` gives (before, after) for each axis; input and output share a quantization."""

    padding: tuple[tuple[int, int], ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source, target = tensors[self.inputs[0]], tensors.get(self.output)
        if len(self.padding) != len(source.shape) or min(map(min, self.padding)) < 0:
            raise ThimbleError(f"{self.name}: padding of {self.padding} does not fit {source.name}")
        if target is not None and (
            (str(source.dtype), source.scale, source.zero_point)
            != (str(target.dtype), target.scale, target.zero_point)
        ):
            raise ThimbleError(f"{self.name}: padding changes the quantization of {source.name}")
        pairs = zip(source.shape, self.padding, strict=True)
        return tuple(extent + before + after for extent, (before, after) in pairs)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        windows = (Window(d, offset=-before) for d, (before, _) in enumerate(self.padding))
        return (Term((Operand(self.inputs[0], tuple(windows)),)),)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        target = tensors[self.output]
        low, high = (e - target.zero_point for e in (target.dtype.minimum, target.dtype.maximum))
        return min(0, low), max(0, high)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        operand = self.terms(tensors)[0].operands[0]
        zero = tensors[self.output].zero_point
        return windowed(regions[operand.tensor], operand.region(out), zero) - zero

    def finish(
        self, tensors: Tensors, out: Box, acc: IntArray, regions: Mapping[str, BoxValues]
    ) -> IntArray:
        return acc + tensors[self.output].zero_point
