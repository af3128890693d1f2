"""The same elements, row-major, in another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.operator import BoxValues, Operator, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Reshape(Operator):
    """Declared to read its whole input for any element: a step must take it in one unit, and may
    put the output where the input is, which costs nothing."""

    fixed_shape: ClassVar[bool] = True

    combine: Literal["add", "maximum", "whole"] = "whole"
    shape: tuple[int, ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source = tensors[self.inputs[0]]
        if prod(self.shape) != source.size or not self.shape:
            raise ThimbleError(f"{self.name}: {source.shape} cannot be reshaped to {self.shape}")
        self.same_quantization(tensors)
        return self.shape

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        windows = tuple(Window(None, extent) for extent in tensors[self.inputs[0]].shape)
        return (Term((Operand(self.inputs[0], windows),)),)

    def overwritable(self, tensors: Tensors) -> tuple[str, ...]:
        """Return the input if it has the output's size: all is read at once and may stay there."""
        return self.same_sized(tensors)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        source = tensors[self.inputs[0]]
        x = windowed(regions[source.name], source.box, source.zero_point)
        return x.reshape(len(x), *self.shape)[:, *(slice(*each) for each in out)]
