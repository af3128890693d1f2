"""Steps that are powers of two: formats, gradients, shifts, and sums that never overflow."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from pipeline.errors import ThimbleError
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.power_of_two import Format
from pipeline.quantize.range_check import check_sums, extremes
from pipeline.quantize.simulated import QuantizedLayer, QuantizedNetwork
from tests.quantize.nets import images, shaken

FORMATS = [Format(DType.parse(name)) for name in ("int4", "uint4", "int8")]


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: str(f.dtype))
@pytest.mark.parametrize("exponent", [-9, -3, 0, 2])
def test_values_are_those_of_the_integer_requantization(form: Format, exponent: int) -> None:
    """Every multiple of a 16th of a step, ties among them, against the integer rule."""
    fine = np.arange(-4096, 4096)
    x = torch.from_numpy(fine * 2.0 ** (exponent - 4)).float()
    expected = form.dtype.clip(PowerOfTwo(0, 4).apply(fine.astype(np.int64)))
    found = form.quantize(x, torch.tensor(float(exponent)))
    assert (found.double().numpy() == expected * 2.0**exponent).all()
    assert (form.integers(x, exponent).numpy() == expected).all()


def test_the_step_is_a_fraction_of_the_threshold() -> None:
    signed, unsigned, _ = FORMATS
    assert float(signed.exponent(torch.tensor(0.3))) == 1 - 3
    assert float(unsigned.exponent(torch.tensor(0.3))) == 1 - 4
    assert float(signed.exponent(torch.tensor(-2.0))) == -2 - 3


def loss_and_gradients(x: float, log2_t: float) -> tuple[float, float, float]:
    """Of a quantized value y alone: y, dy/dx, dy/dlog2_t."""
    form = FORMATS[0]
    value = torch.tensor([x], requires_grad=True)
    threshold = torch.tensor(log2_t, requires_grad=True)
    y = form.quantize(value, form.exponent(threshold))
    torch.autograd.backward(y.sum())
    assert value.grad is not None and threshold.grad is not None
    return float(y.detach()), float(value.grad), float(threshold.grad)


@pytest.mark.parametrize("x", [-5.0, -1.0, -0.93, -0.4, 0.0, 0.06, 0.3, 0.87, 0.95, 3.0])
def test_gradients_are_those_of_the_paper(x: float) -> None:
    """TQT eq. 7 with t = 1 and s = 1/8: d y / d log2 t = s ln2 (round(x/s) - x/s), n or p."""
    step = 1 / 8
    rounded = round(x / step)
    y, to_x, to_log2 = loss_and_gradients(x, 0.0)
    if rounded < -8:
        expected = (-1.0, 0.0, -8 * step * math.log(2))
    elif rounded > 7:
        expected = (7 * step, 0.0, 7 * step * math.log(2))
    else:
        expected = (rounded * step, 1.0, step * math.log(2) * (rounded - x / step))
    assert (y, to_x) == expected[:2]
    assert to_log2 == pytest.approx(expected[2], abs=1e-6)


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: str(f.dtype))
@pytest.mark.parametrize("scale", [0.01, 0.7, 30.0])
def test_the_best_threshold_has_the_least_error(form: Format, scale: float) -> None:
    x = torch.randn(5000, generator=torch.Generator().manual_seed(1)) * scale
    x = x if form.dtype.signed else x.clamp(min=0)

    def error(power: float) -> float:
        exponent = torch.tensor(power - form.fraction_bits)
        return float((form.quantize(x, exponent) - x).square().sum())

    best = form.best_log2(x)
    assert best - math.floor(best) == 0.5
    assert all(error(math.ceil(best)) <= error(float(power)) for power in range(-12, 12))


def test_zeros_have_a_threshold_too() -> None:
    assert math.isfinite(FORMATS[0].best_log2(torch.zeros(5)))


LOG2 = st.floats(-20, 20)


@settings(max_examples=300, deadline=None)
@given(weight=LOG2, bias=LOG2, out=LOG2, incoming=st.integers(-10, 4), inputs=st.integers(1, 400))
def test_shifts_are_never_negative_and_never_overflow(
    weight: float, bias: float, out: float, incoming: int, inputs: int
) -> None:
    layer = QuantizedLayer(nn.Linear(inputs, 2), activated=True)
    with torch.no_grad():
        layer.weight_log2.fill_(weight)
        layer.bias_log2.fill_(bias)
        assert layer.out_log2 is not None
        layer.out_log2.fill_(out)
        steps = layer.exponents(float(incoming))
    assert steps.out is not None
    left, right = float(steps.acc - steps.bias), float(steps.out - steps.bias)
    assert left.is_integer() and 0 <= left <= layer.left_shift_limit
    assert right.is_integer() and right >= 1
    worst = inputs * 15 * 8 * 2**left + 128
    assert worst <= 32767 or left == 0


def test_the_published_network_can_never_overflow() -> None:
    limits = [
        layer.left_shift_limit for layer in QuantizedNetwork(Mnist2kb().build()).quantized.values()
    ]
    assert limits == [4, 2, 1, 0]
    for inputs, limit in zip((9, 45, 72, 176), limits, strict=True):
        assert (inputs * 15 * 8 << limit) + 128 <= 32767


def test_every_parameter_and_threshold_is_trained_until_frozen() -> None:
    network = shaken(Mnist2kb().build(), 5, (28, 28, 1))
    pooled = network.pool(images(64, (28, 28, 1), 6))
    torch.autograd.backward(network(pooled).square().sum())
    trained = {name for name, p in network.named_parameters() if p.grad is not None}
    assert {name for name, _ in network.named_parameters()} == trained
    network.freeze()
    left = {name for name, p in network.named_parameters() if p.requires_grad}
    assert all(name.endswith((".weight", ".bias")) for name in left)
    assert len(left) == 8


def test_freezing_changes_no_result() -> None:
    network = shaken(Mnist2kb().build(), 7, (28, 28, 1))
    pooled = network.pool(images(50, (28, 28, 1), 8))
    with torch.no_grad():
        before = network(pooled)
        network.freeze()
        assert torch.equal(network(pooled), before)
    assert all(float(layer.weight_log2).is_integer() for layer in network.quantized.values())


def test_calibration_keeps_a_trained_looking_network_close() -> None:
    torch.manual_seed(0)
    plain = Mnist2kb().build()
    network = QuantizedNetwork(plain)
    pixels = images(300, (28, 28, 1), 9)
    with torch.no_grad():
        network.calibrate(network.pool(pixels))
        real, quantized = plain(pixels), network(network.pool(pixels))
    assert float((real - quantized).square().mean() / real.square().mean()) < 0.1


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
    signed = extremes(np.array([[3, -2]]), np.array([0]), DType.parse("int4"), PowerOfTwo())
    assert signed == (3 * -8 - 2 * 7, 3 * 7 + 2 * 8)  # both ways


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
