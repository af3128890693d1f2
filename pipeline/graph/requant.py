"""From an accumulator back to a narrow integer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp
from typing import ClassVar, Literal

import numpy as np

from pipeline.errors import ThimbleError
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

    def part(self, start: int, stop: int) -> PowerOfTwo:
        """Return the same for every channel."""
        return self

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


@dataclass(frozen=True)
class FixedPoint:
    """``(acc + bias) * multiplier * 2**(shift - 31)``, rounded twice as TFLite does.

    One multiplier and shift, or one for each channel of the last axis. A positive shift goes left
    before the multiplication; with a shift of 0 the second rounding does nothing. Source:
    gemmlowp's SaturatingRoundingDoublingHighMul and RoundingDivideByPOT, which TFLite's reference
    kernels and tflite-micro are built with.
    """

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.multipliers or len(self.multipliers) != len(self.shifts):
            raise ThimbleError("a requantization needs as many multipliers as shifts, at least one")
        if max(map(abs, self.multipliers)) >= 1 << 31:
            raise ThimbleError("a requantization's multipliers are less than 2**31")
        if min(self.shifts) < -31 or max(self.shifts) > 30:
            raise ThimbleError("a requantization's shifts are -31 … 30")

    @classmethod
    def of(cls, scales: Sequence[float]) -> FixedPoint:
        """TFLite's QuantizeMultiplier: the nearest 31-bit multiplier of each real scale >= 0."""
        pairs = [_quantized(float(scale)) for scale in scales]
        return cls(tuple(m for m, _ in pairs), tuple(s for _, s in pairs))

    @classmethod
    def rounding_once(cls, scales: Sequence[float], largest: float) -> FixedPoint:
        """Shifts of 0, and the multipliers that they leave: results are nearer to the real ones.

        A second rounding by e bits moves every 2**(e + 1)-th result. Without it the multiplier is
        off by up to 2**-32, which moves results less often, but for the smallest scales.

        Args:
            scales: sums to 8-bit units, or to finer ones.
            largest: sum, whatever its sign.
        """
        twice = cls.of(scales)
        reach = max(min(largest, 256 / scale) if scale else 0.0 for scale in scales)
        if max(twice.shifts) > 0 or reach > 1 << 20:
            return twice
        multipliers = tuple(round(scale * (1 << 31)) for scale in scales)
        return cls(multipliers, (0,) * len(multipliers))

    def part(self, start: int, stop: int) -> FixedPoint:
        """Take the channels ``start`` to ``stop`` (exclusive) of the output."""
        return self.chosen(range(start, stop))

    def chosen(self, channels: Sequence[int]) -> FixedPoint:
        """Take some channels of the output."""
        if len(self.multipliers) == 1:
            return self
        pairs = [(self.multipliers[channel], self.shifts[channel]) for channel in channels]
        return FixedPoint(tuple(m for m, _ in pairs), tuple(s for _, s in pairs))

    def apply(self, acc: IntArray, bias: IntArray | int = 0) -> IntArray:
        """Exact for 32-bit values; (…, channels) or any shape when there is one multiplier."""
        multiplier = np.array(self.multipliers, dtype=np.int64)
        shift = np.array(self.shifts, dtype=np.int64)
        value = np.asarray(acc, dtype=np.int64) + bias
        value = value << np.maximum(shift, 0)
        return rounded_shift(doubled_high(value, multiplier), np.maximum(-shift, 0))


@dataclass(frozen=True)
class Mean:
    """Divide a sum by how many values it has, half away from zero: TFLite's AVERAGE_POOL_2D."""

    def apply(self, acc: IntArray, count: IntArray) -> IntArray:
        half = np.where(acc > 0, count // 2, -(count // 2))
        return np.asarray(np.trunc((acc + half) / count), dtype=np.int64)


@dataclass(frozen=True)
class UnsignedMean(Mean):
    """The same of integers that stand for unsigned ones, 128 greater: halves go up."""

    OFFSET: ClassVar[int] = 128

    def apply(self, acc: IntArray, count: IntArray) -> IntArray:
        return super().apply(acc + self.OFFSET * count, count) - self.OFFSET


Requant = PowerOfTwo | FixedPoint
"""Every requantization that a sum of products may carry."""

INT32 = -(1 << 31), (1 << 31) - 1


def overflow(requant: Requant, sums: tuple[int, int], bias: IntArray | None = None) -> str:
    """Return how sums leave the 32 bits that requantization is computed in; "" if they do not.

    Args:
        sums: the least and greatest sum.
        bias: (channels,), added in the requantization's own way.
    """
    biases = np.zeros(1, np.int64) if bias is None else np.asarray(bias, dtype=np.int64)
    left = half = up = 0
    if isinstance(requant, PowerOfTwo):
        left, half = requant.left_shift, 1 << requant.right_shift >> 1
    else:
        up = max(0, *requant.shifts)
    low = (min(sums[0], 0) << left) + min(0, int(biases.min()))
    high = (max(sums[1], 0) << left) + max(0, int(biases.max())) + half
    if low < INT32[0] or high > INT32[1]:
        return f"its sums reach {low} … {high}, which is beyond 32 bits"
    if max(-low, high) << up > 1 << 32:
        return f"its sums, shifted left by {up}, are beyond 32 bits"
    return ""


def doubled_high(value: IntArray, multiplier: IntArray | int) -> IntArray:
    """``value * multiplier / 2**31`` to nearest, halves towards +infinity, in 32 bits.

    gemmlowp's SaturatingRoundingDoublingHighMul: a nudge of 2**30, or 1 - 2**30 when the product
    is negative, then a division that truncates.
    """
    product = np.asarray(value, dtype=np.int64) * multiplier
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    # truncation towards zero, exact beyond float's 53 bits
    quotient = np.where(nudged >= 0, nudged >> 31, -(-nudged >> 31))
    return np.minimum(quotient, (1 << 31) - 1)


def rounded_shift(value: IntArray, exponent: IntArray | int) -> IntArray:
    """``value / 2**exponent`` to nearest, halves away from zero: RoundingDivideByPOT."""
    mask = (np.int64(1) << np.asarray(exponent, dtype=np.int64)) - 1
    threshold = (mask >> 1) + (value < 0)
    return np.asarray((value >> exponent) + ((value & mask) > threshold), dtype=np.int64)


def _quantized(scale: float) -> tuple[int, int]:
    if not 0 <= scale < 1 << 30:
        raise ThimbleError(f"a requantization by {scale} has no fixed-point form")
    multiplier, exponent = mantissa(scale)
    return (0, 0) if exponent < -31 else (multiplier, exponent)


def mantissa(scale: float) -> tuple[int, int]:
    """``scale`` >= 0 as m * 2**(shift - 31), m being below 2**31: (m, shift)."""
    fraction, exponent = frexp(scale)
    multiplier = int(fraction * (1 << 31) + 0.5)
    return (1 << 30, exponent + 1) if multiplier == 1 << 31 else (multiplier, exponent)
