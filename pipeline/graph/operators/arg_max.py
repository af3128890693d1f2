"""Where along an axis the greatest element is, or the least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.operator import BoxValues, Operator, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class ArgMax(Operator):
    """The index along ``axis`` of the first greatest element, or of the first ``least``; the axis
    is left out."""

    combine: Literal["add", "maximum", "whole"] = "whole"
    axis: int = 0
    least: bool = False

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape = tensors[self.inputs[0]].shape
        if not 0 <= self.axis < len(shape):
            raise ThimbleError(f"{self.name}: axis {self.axis} of {shape}")
        return (*shape[: self.axis], *shape[self.axis + 1 :]) or (1,)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        shape = tensors[self.inputs[0]].shape
        windows = [Window(d - (d > self.axis)) for d in range(len(shape))]
        windows[self.axis] = Window(None, shape[self.axis])
        return (Term((Operand(self.inputs[0], tuple(windows)),)),)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        source, region = tensors[self.inputs[0]], self.terms(tensors)[0].operands[0].region(out)
        worst = source.dtype.maximum if self.least else source.dtype.minimum
        x = windowed(regions[source.name], region, worst)
        found = (np.argmin if self.least else np.argmax)(x, axis=self.axis + 1)
        return np.asarray(found.reshape(len(x), *(stop - start for start, stop in out)), np.int64)
