"""Check that sums fit their accumulators, of 16 bits on small cores, for every possible input."""

from __future__ import annotations

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType, IntArray


def extremes(
    weights: IntArray, bias: IntArray, source: DType, requant: PowerOfTwo
) -> tuple[int, int]:
    """The least and greatest value any intermediate of ``(acc << left) + bias + half`` can take.

    With inputs of [low, high] each product w * x lies between w * low and w * high, and the
    extremes of a sum of those that are negative (positive) bound every partial sum too, in any
    order. ``half`` is what rounding may add before the right shift.
    """
    flat = weights.reshape(len(weights), -1)
    products = np.stack([flat * source.minimum, flat * source.maximum])
    least = np.minimum(products.min(0), 0).sum(1) << requant.left_shift
    greatest = np.maximum(products.max(0), 0).sum(1) << requant.left_shift
    half = 1 << requant.right_shift >> 1
    low = min(least.min(), (least + bias).min())
    high = max(greatest.max(), (greatest + bias).max()) + half
    return int(low), int(high)


def fit(values: tuple[int, int], bits: int) -> bool:
    """Check whether an accumulator of ``bits`` holds these extremes."""
    return values[0] >= -(1 << bits - 1) and values[1] < 1 << bits - 1


def check_sums(
    name: str, weights: IntArray, bias: IntArray, source: DType, requant: PowerOfTwo, bits: int = 16
) -> None:
    """Raises ThimbleError when layer ``name`` could overflow its accumulator of ``bits``."""
    low, high = extremes(weights, bias, source, requant)
    if not fit((low, high), bits):
        most = (1 << bits - 1) - 1
        raise ThimbleError(
            f"quantize: {name} sums {weights[0].size} products to {low}…{high}, but accumulators "
            f"hold {-most - 1}…{most} ({bits} bits): use fewer inputs "
            "(model.channels, model.input_shape) for that layer"
        )
