"""gemmlowp's fixed-point exponential and reciprocal, which TFLite's integer softmax is made of.

Source: gemmlowp, fixedpoint.h. Qm.n below is a 32-bit integer with m integer bits. Everything is
computed on int64 arrays and stays in 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.requant import doubled_high, mantissa, rounded_shift
from pipeline.graph.tensor import IntArray

Floats = NDArray[Any]
ONE = (1 << 31) - 1
"""1.0 in Q0.31."""

DIFFERENCE_BITS = 5
"""Integer bits of a softmax's scaled differences."""

SUM_BITS = 12
"""Integer bits of a softmax's sum of exponentials."""

_BARREL = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""exp(-2**n) in Q0.31."""


def exponentials(input_scale: float, beta: float = 1.0) -> tuple[int, ...]:
    """exp(-beta * input_scale * d) in Q0.31 for d = 0 … 255, as TFLite's integer softmax has it;
    0 for differences that it leaves out."""
    scaled, known = differences(input_scale, beta)
    return tuple(np.where(known, exp_of_negative(scaled), 0).tolist())


def differences(input_scale: float, beta: float = 1.0) -> tuple[IntArray, NDArray[np.bool_]]:
    """-beta * input_scale * d in Q5.26 for d = 0 … 255, no less than -31, and which are no less."""
    scale = min(beta * input_scale * (1 << (31 - DIFFERENCE_BITS)), float(ONE))
    multiplier, shift = mantissa(scale)
    difference = -np.arange(256, dtype=np.int64)
    if shift < 0:  # below the format's resolution
        return difference * 0, difference <= 0
    radius = floor(((1 << DIFFERENCE_BITS) - 1) * (1 << (31 - DIFFERENCE_BITS)) / (1 << shift))
    scaled = doubled_high(np.maximum(difference, -radius) << shift, multiplier)
    return scaled, difference >= -radius


def exp_of_negative(a: IntArray, integer_bits: int = DIFFERENCE_BITS) -> IntArray:
    """exp(a) in Q0.31 for a <= 0 of at most 5 integer bits."""
    bits = 31 - integer_bits
    quarter = 1 << (bits - 2)
    part = (a & (quarter - 1)) - quarter  # in [-1/4, 0)
    result = _exp_of_quarter(part << integer_bits)
    remainder = part - a
    for exponent, factor in _BARREL[: integer_bits + 2]:
        chosen = (remainder & (1 << (bits + exponent))) != 0
        result = np.where(chosen, doubled_high(result, factor), result)
    return np.asarray(np.where(a == 0, ONE, result))


def _exp_of_quarter(a: IntArray) -> IntArray:
    """exp(a) in Q0.31 for a in [-1/4, 0) in Q0.31: the fourth-order expansion around -1/8."""
    at_eighth, third = 1895147668, 715827883
    x = a + (1 << 28)
    x2 = doubled_high(x, x)
    x3, x4 = doubled_high(x2, x), doubled_high(x2, x2)
    sixth = doubled_high(rounded_shift(x4, 2) + x3, third)
    terms = rounded_shift(sixth + x2, 1)
    return np.asarray(at_eighth + doubled_high(np.asarray(x + terms), at_eighth))


def reciprocal(x: IntArray) -> tuple[IntArray, IntArray]:
    """1 / x for positive x in Q12.19: (Q0.31 mantissa, how many bits it is over one)."""
    headroom = 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)
    mantissa = one_over_one_plus((x << headroom) - (1 << 31))
    return mantissa, SUM_BITS - headroom


def logarithm(x: IntArray) -> IntArray:
    """log(x) in Q5.26 of x >= 1 in Q12.19: TFLite's log_x_for_x_greater_than_or_equal_to_1."""
    root_half, start = 1518500250, 1805811301  # 2**-(1/2), 2**-(1/4)
    half = doubled_high(x, root_half)
    above, below = (31 - np.frexp(each)[1].astype(np.int64) for each in (x, half))
    nearer, quarter = _saturated(doubled_high(x << above, root_half) << 1), 1 << 23
    r = np.minimum(nearer, _saturated(x << below))
    power = np.maximum((11 - above << 25) + quarter, (12 - below << 25) - quarter)
    p, q = r + start + 1 >> 1, r - start << 1
    square = doubled_high(q, q)
    number = doubled_high(q, r) + doubled_high(doubled_high(q, square), 117049297)
    inner = doubled_high(p, np.asarray(1057819769 + q + doubled_high(square, 127690142)))
    inverse = one_over_one_plus(inner + doubled_high(q, 638450708))
    total = doubled_high(power, 1488522236) + doubled_high(rounded_shift(number, 6), inverse)
    return _saturated(total << 1)


def one_over_one_plus(a: IntArray) -> IntArray:
    """1 / (1 + a) in Q0.31 for a in [0, 1) in Q0.31."""
    return _saturated(_two_over_one_plus(a) << 1)


def one_minus_over_one_plus(a: IntArray) -> IntArray:
    """(1 - a) / (1 + a) in Q0.31 for a in [0, 1) in Q0.31."""
    return _saturated((_two_over_one_plus(a) - (1 << 29)) << 2)


def _two_over_one_plus(a: IntArray) -> IntArray:
    """2 / (1 + a) in Q2.29 for a in [0, 1) in Q0.31: three steps of Newton's method."""
    half = (a + ONE + 1) >> 1
    x = 1515870810 + doubled_high(half, -1010580540)  # 48/17 - 32/17 * half
    for _ in range(3):
        rest = (1 << 29) - doubled_high(half, x)
        x = x + _saturated(doubled_high(x, rest) << 2)
    return x


def _saturated(x: IntArray) -> IntArray:
    return np.clip(x, -(1 << 31), ONE)


def points(function: Callable[[Floats], Floats], low: float, high: float) -> tuple[int, ...]:
    """Return 513 values of ``function`` from ``low`` to ``high`` in Q0.15, each nearer to the
    curve's middle by half of what lines are off there: TFLite's LUTPopulate, in float32."""
    step = np.float32((high - low) / 512)
    at = np.float32(low) + np.arange(513, dtype=np.float32) * step
    exact, middle = (function(x) * np.float32(32768) for x in (at, at[:-1] + step / 2))
    found, nearest = np.floor(exact + 0.5), np.floor(middle + 0.5)
    off = np.floor((exact[1:] + found[:-1]) / 2 + 0.5) - nearest
    found[:-1] -= np.copysign(np.floor(abs(off) / 2 + 0.5), off)
    return tuple(found.clip(-32768, 32767).astype(np.int64).tolist())


@cache
def sigmoid_points() -> tuple[int, ...]:
    """Return 256 values of sigmoid from 0 in steps of 1/24, in Q0.16, each nearer to the curve's
    middle by half of what lines are off there: TFLite's sigmoid_table_uint16."""
    exact = 65536 / (1 + np.exp(-np.arange(256) / 24))
    near = np.rint(exact[1:-1] - np.diff(exact, 2) / 16).astype(np.int64)
    return 1 << 15, *near.tolist(), (1 << 16) - 1


def between(points: Sequence[int], q: IntArray) -> IntArray:
    """Return what lines between 513 ``points`` are at ``q`` of 16 bits: TFLite's LUTLookup."""
    table, q = np.array(points, np.int64), np.clip(q, -(1 << 15), (1 << 15) - 1)
    low = table[(q >> 7) + 256]
    return np.asarray(low + ((table[(q >> 7) + 257] - low) * (q & 127) + 64 >> 7))
