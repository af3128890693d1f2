import itertools

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType
from pipeline.quantize.range_check import check_sums, extremes

U4, BIT = DType.parse("uint4"), DType(1, False)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_what_brute_force_over_inputs_and_orders_finds(seed: int) -> None:
    """Every input, every order of summing: each partial sum is a sum over a subset."""
    random = np.random.default_rng(seed)
    weights, bias = random.integers(-8, 8, (2, 4)), random.integers(-128, 128, 2)
    requant = PowerOfTwo(int(random.integers(0, 3)), int(random.integers(0, 5)))
    low, high = 0, 0
    half = (1 << requant.right_shift) // 2
    for channel in range(2):
        for subset in itertools.product((0, 1), repeat=4):
            for x in itertools.product((0, 15), repeat=4):
                acc = int(np.dot(weights[channel], np.multiply(subset, x))) << requant.left_shift
                value = acc + int(bias[channel])
                low, high = min(low, acc, value), max(high, acc + half, value + half)
    assert extremes(weights, bias, U4, requant) == (low, high)


def test_signed_inputs_count_both_ways() -> None:
    weights, bias = np.array([[3, -2]]), np.array([0])
    source = DType.parse("int4")
    assert extremes(weights, bias, source, PowerOfTwo()) == (3 * -8 - 2 * 7, 3 * 7 + 2 * 8)


def test_the_limit_is_exact() -> None:
    weights = np.full((1, 312), 7)
    fits = 32767 - 312 * 7 * 15
    check_sums("layer", weights, np.array([fits]), U4, PowerOfTwo())
    with pytest.raises(ThimbleError, match="layer sums 312 products"):
        check_sums("layer", weights, np.array([fits + 1]), U4, PowerOfTwo())
    with pytest.raises(ThimbleError, match="16 bits"):
        check_sums("layer", weights, np.array([fits]), U4, PowerOfTwo(0, 1))


def test_a_left_shift_counts() -> None:
    weights, bias = np.full((1, 72), -8), np.array([0])
    check_sums("layer", weights, bias, BIT, PowerOfTwo(5))
    with pytest.raises(ThimbleError):
        check_sums("layer", weights, bias, U4, PowerOfTwo(2))
