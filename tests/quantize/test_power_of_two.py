import math

import numpy as np
import pytest
import torch

from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType
from pipeline.quantize.power_of_two import Format

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


def test_frozen_thresholds_get_no_gradient() -> None:
    form = FORMATS[0]
    x = torch.tensor([0.5], requires_grad=True)
    torch.autograd.backward(form.quantize(x, torch.tensor(-3.0)).sum())
    assert x.grad is not None
    assert float(x.grad) == 1


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
