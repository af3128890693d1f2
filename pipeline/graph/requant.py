"""From an accumulator back to a narrow integer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.graph.tensor import IntArray


@dataclass(frozen=True)
class PowerOfTwo:
    """``((acc << left_shift) + bias) / 2**right_shift``, rounded.

    Source: Gural & Murmann's firmware and notebooks: one power-of-two threshold for each tensor,
    so that every scale is a shift. ``half_even`` is Python's and IEEE's rounding; ``floor`` is
    what a pooling of unsigned pixels uses.
    """

    left_shift: int = 0
    right_shift: int = 0
    rounding: Literal["half_even", "floor"] = "half_even"

    def apply(self, acc: IntArray, bias: IntArray | int = 0) -> IntArray:
        """Exact on int64; shapes broadcast. The caller clips to the output type."""
        value = np.asarray((acc << self.left_shift) + bias, dtype=np.int64)
        if self.right_shift == 0:
            return value
        floor = value >> self.right_shift
        if self.rounding == "floor":
            return floor
        remainder = value - (floor << self.right_shift)
        half = 1 << (self.right_shift - 1)
        up = (remainder > half) | ((remainder == half) & (floor & 1 == 1))
        return np.asarray(floor + up, dtype=np.int64)


Requant = PowerOfTwo
"""Every requantization an operator may carry."""
