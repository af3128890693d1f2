"""Where along an axis the greatest element is, or the least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.graph.families import OfOne
from pipeline.graph.operator import BoxValues, Tensors
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class ArgMax(OfOne):
    """The index along ``axis`` of the first greatest element, or of the first ``least``; the axis
    is left out."""

    axis: int = 0
    least: bool = False

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape = tensors[self.inputs[0]].shape
        if not 0 <= self.axis < len(shape):
            raise ThimbleError(f"{self.name}: axis {self.axis} of {shape}")
        return (*shape[: self.axis], *shape[self.axis + 1 :]) or (1,)

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        shape = tensors[self.inputs[0]].shape
        windows = [Window(d - (d > self.axis)) for d in range(len(shape))]
        windows[self.axis] = Window(None, shape[self.axis])
        return tuple(windows)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        dtype = tensors[self.inputs[0]].dtype
        x = self.given(tensors, out, regions, dtype.maximum if self.least else dtype.minimum)
        found = (np.argmin if self.least else np.argmax)(x, axis=self.axis + 1)
        return np.asarray(found.reshape(len(x), *(stop - start for start, stop in out)), np.int64)
