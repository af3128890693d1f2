"""Images of another size: each pixel is a weighted mean of some neighbours of the old ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.graph.families import OfOne
from pipeline.graph.operator import Regions, Tensors
from pipeline.graph.tensor import Box, IntArray

ONE_BITS = 10
"""Weights are multiples of 2**-10, as in TFLite."""
WIDEST_DIVIDE = 32


@dataclass(frozen=True)
class Resize(OfOne):
    """(h, w, c) -> (h', w', c), in one quantization: TFLite's int8 RESIZE_BILINEAR, and other ways
    to weigh neighbours.

    Row y is made of the rows ``firsts[0][y]`` on, as many as it has ``weights[0]``, which add up to
    2**10; columns likewise. Sums of stored integers are rounded once, halves away from 0.
    """

    fixed_shape: ClassVar[bool] = True

    firsts: tuple[tuple[int, ...], tuple[int, ...]] = ((0,), (0,))
    weights: tuple[tuple[int, ...], tuple[int, ...]] = ((1 << ONE_BITS,), (1 << ONE_BITS,))

    @property
    def taps(self) -> tuple[int, int]:
        """Rows and columns that are weighed."""
        rows, columns = (
            len(w) // max(1, len(f)) for f, w in zip(self.firsts, self.weights, strict=True)
        )
        return rows, columns

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape = tensors[self.inputs[0]].shape
        if len(shape) != 3:
            raise ThimbleError(f"{self.name}: images are resized, not {shape}")
        each = zip(self.firsts, self.weights, self.taps, shape, strict=False)
        for firsts, weights, taps, extent in each:
            if not firsts or min(firsts) < 0 or max(firsts) + taps > extent:
                raise ThimbleError(f"{self.name}: it reads rows or columns beyond {shape}")
            sums = np.array(weights).reshape(len(firsts), -1).sum(1)
            if (sums != 1 << ONE_BITS).any():
                raise ThimbleError(f"{self.name}: its weights do not add up to {1 << ONE_BITS}")
        self.same_quantization(tensors)
        return len(self.firsts[0]), len(self.firsts[1]), shape[2]

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        shape = tensors[self.inputs[0]].shape
        read = (_covering(d, self.firsts[d], self.taps[d], shape[d]) for d in range(2))
        return *read, Window(2)

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        region, x = self.region(tensors, out), self.given(tensors, out, regions)
        for axis, (taps, (start, stop)) in enumerate(zip(self.taps, out, strict=False)):
            firsts = np.array(self.firsts[axis][start:stop]) - region[axis][0]
            weights = np.array(self.weights[axis]).reshape(-1, taps)[start:stop]
            shape = (-1, *(1 for _ in range(2 - axis)))
            x = sum(
                (x.take(firsts + tap, 1 + axis) * weights[:, tap].reshape(shape)
                 for tap in range(taps)), start=np.zeros((), np.int64),
            )  # fmt: skip
        half = np.where(x > 0, 1, -1) << (2 * ONE_BITS - 1)
        rounded = np.trunc((x + half) / (1 << 2 * ONE_BITS)).astype(np.int64)
        return tensors[self.output].dtype.clip(rounded)


@lru_cache(1 << 8)
def _covering(axis: int, firsts: tuple[int, ...], taps: int, extent: int) -> Window:
    """Find the narrowest window that reads, at each index, the ``taps`` from ``firsts`` on."""
    best, each = Window(None, extent), np.arange(len(firsts))
    for divide in range(1, min(len(firsts), WIDEST_DIVIDE) + 1):
        least = extent * divide // len(firsts)
        for stride in {max(1, least), least + 1}:
            ahead = np.array(firsts) - each // divide * stride
            count = int(np.ptp(ahead)) + taps
            if count < best.count:
                best = Window(axis, count, stride, int(ahead.min()), divide=divide)
    return best
