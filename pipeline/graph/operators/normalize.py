"""Normalization by the mean and the spread of some axes, or by their root mean square."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.graph.families import OfOne
from pipeline.graph.operator import BoxValues, Tensors
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Box, IntArray

MOST = 1 << 16
"""Elements that are normalized together: their squares add up to 32 bits."""


@dataclass(frozen=True)
class Normalize(OfOne):
    """Normalize what lies along ``axes`` of an input of three, less its mean where ``centred``.

    With n elements, their sum S (0 where not centred) and their squares' sum Q, less zero points,
    the output is (n x - S) / sqrt(n Q - S^2 + ``epsilon``) times ``requant``: layer, instance,
    group and RMS normalization, of sums of integers that are exact, and rounded once.
    """

    axes: tuple[int, ...] = (2,)
    centred: bool = True
    epsilon: int = 0
    requant: FixedPoint = FixedPoint((1 << 30,), (1,))

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source = tensors[self.inputs[0]]
        if len(source.shape) != 3 or not set(self.axes) <= {0, 1, 2} or not self.axes:
            raise ThimbleError(f"{self.name}: axes {self.axes} of {source.shape}, three are needed")
        if source.dtype.bits != 8 or self.count(tensors) > MOST:
            raise ThimbleError(f"{self.name}: up to {MOST:,} elements of 8 bits are normalized")
        if not 0 <= self.epsilon < 1 << 62 or not -24 <= self.requant.shifts[0] <= 24:
            raise ThimbleError(f"{self.name}: its epsilon or its output's scale is out of range")
        return source.shape

    def count(self, tensors: Tensors) -> int:
        """Elements that are normalized together."""
        return prod(tensors[self.inputs[0]].shape[axis] for axis in self.axes)

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        shape = tensors[self.inputs[0]].shape
        return tuple(Window(None, n) if d in self.axes else Window(d) for d, n in enumerate(shape))

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        target = tensors[self.output]
        x = self.given(tensors, out, regions) - tensors[self.inputs[0]].zero_point
        over, n = tuple(axis + 1 for axis in self.axes), self.count(tensors)
        total = x.sum(over, keepdims=True) * self.centred
        spread = np.maximum(n * (x * x).sum(over, keepdims=True) - total**2 + self.epsilon, 1)
        pairs = np.array([inverse_root(int(value)) for value in spread.reshape(-1)], np.int64)
        mantissa, halvings = (pairs[:, side].reshape(spread.shape) for side in (0, 1))
        factor = mantissa * self.requant.multipliers[0] >> 31
        right = 62 - self.requant.shifts[0] - halvings
        scaled = (n * x - total) * factor + (np.int64(1) << right - 1) >> right
        stored = target.dtype.clip(scaled + target.zero_point)
        taken = (slice(*span) if d in self.axes else slice(None) for d, span in enumerate(out))
        return np.asarray(stored[:, *taken])


def inverse_root(value: int) -> tuple[int, int]:
    """1 / sqrt(value) of 1 … 2**64 - 1 as m * 2**(k - 62): (m below 2**31, k)."""
    k = (64 - value.bit_length()) // 2
    return min((1 << 62) // isqrt(value << 2 * k), (1 << 31) - 1), k
