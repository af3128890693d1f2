"""Explicit padding with the real value 0, or with another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import Placing
from pipeline.graph.operator import BoxValues, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Pad(Placing):
    """``padding`` gives (before, after) for each axis; input and output share a quantization.

    ``value``: the stored integer; None for the zero point.
    """

    padding: tuple[tuple[int, int], ...] = ()
    value: int | None = None

    def fill(self, tensors: Tensors) -> int:
        """Return the stored integer that is padded with."""
        return tensors[self.inputs[0]].zero_point if self.value is None else self.value

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source = tensors[self.inputs[0]]
        if len(self.padding) != len(source.shape) or min(map(min, self.padding)) < 0:
            raise ThimbleError(f"{self.name}: padding of {self.padding} does not fit {source.name}")
        self.same_quantization(tensors)
        pairs = zip(source.shape, self.padding, strict=True)
        return tuple(extent + before + after for extent, (before, after) in pairs)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        windows = (Window(d, offset=-before) for d, (before, _) in enumerate(self.padding))
        return (Term((Operand(self.inputs[0], tuple(windows)),)),)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        operand = self.terms(tensors)[0].operands[0]
        x = windowed(regions[operand.tensor], operand.region(out), self.fill(tensors))
        return x - tensors[self.output].zero_point
