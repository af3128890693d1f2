"""Networks of 4 bits with steps of powers of two: their file, and the float simulation, which the
integers equal in every activation; formats, gradients, shifts, and sums that never overflow."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from pipeline.artifacts import read_npz, write_npz
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType
from pipeline.models.google12 import Google12
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import ByteConv2d, Model, ResidualUnit, state_arrays
from pipeline.quantize.export import to_graph
from pipeline.quantize.int4 import Int4
from pipeline.quantize.layers import check_layers
from pipeline.quantize.parameters import from_arrays, to_arrays
from pipeline.quantize.power_of_two import Format
from pipeline.quantize.range_check import check_sums, extremes
from pipeline.quantize.simulated import QuantizedLayer, QuantizedNetwork, QuantizedUnit
from tests.quantize.nets import chain, images, shaken

Shape = tuple[int, int, int]


def assert_equal(network: QuantizedNetwork, shape: Shape, count: int, seed: int) -> Graph:
    """All activations and logits of ``count`` images, integer for integer."""
    graph = to_graph("net", network, shape)
    pixels = images(count, shape, seed)
    found = graph.run(pixels.permute(0, 2, 3, 1).numpy().astype(np.int64))
    x, exponent = network.pool(pixels), torch.tensor(-4.0)
    by_operator = graph.tensors | {op.name: graph.tensors[op.output] for op in graph.operators}
    with torch.no_grad():
        for name, layer in network.layers.items():
            if isinstance(layer, (QuantizedLayer, QuantizedUnit)):
                x, exponent = layer(x, exponent)
            else:
                x = layer(x)
            if name not in by_operator:
                continue
            tensor = by_operator[name]
            real = x.permute(0, 2, 3, 1) if x.ndim == 4 else x
            expected = real.double().numpy() / tensor.scale[0]
            assert (found[tensor.name] == expected).all(), name
    return graph


@pytest.mark.parametrize("seed", range(8))
def test_the_published_network_is_exact(seed: int) -> None:
    shape = (28, 28, 1)
    assert_equal(shaken(Mnist2kb().build(), seed, shape), shape, 500, seed + 100)


RELU, FLAT, CONV = nn.ReLU, nn.Flatten, nn.Conv2d
NETWORKS: dict[str, tuple[Shape, nn.Sequential]] = {
    "strided, padded": ((16, 20, 3), chain(
        CONV(3, 4, 3, stride=2, padding=1), RELU(), CONV(4, 6, (1, 3), padding=(0, 1)), RELU(),
        FLAT(), nn.Linear(6 * 4 * 5, 5))),
    "depthwise, dilated": ((24, 24, 2), chain(
        CONV(2, 4, 3, groups=2), RELU(), CONV(4, 4, 3, groups=4, dilation=2), RELU(),
        nn.MaxPool2d(3, stride=2), FLAT(), nn.Linear(4 * 2 * 2, 5))),
    "residual units, the second of other channels": ((16, 20, 3), chain(
        CONV(3, 6, 3), RELU(), ResidualUnit(6, 6), ResidualUnit(6, 9), FLAT(),
        nn.Linear(9 * 6 * 10, 5), pool=1)),
    "bytes among nibbles, depthwise": ((28, 24, 1), chain(
        CONV(1, 4, 3), RELU(), ByteConv2d(4, 4, 3, groups=4), RELU(), nn.MaxPool2d(2),
        CONV(4, 6, 2), RELU(), ByteConv2d(6, 3, 1), RELU(), FLAT(), nn.Linear(3 * 4 * 3, 5))),
    "no pooling, hidden dense layer": ((8, 8, 1), chain(
        CONV(1, 3, 5), RELU(), FLAT(), nn.Linear(3 * 4 * 4, 9), RELU(), nn.Linear(9, 4), pool=1)),
    "dense only": ((16, 16, 1), chain(FLAT(), nn.Linear(16, 3), pool=4)),
    "convolution gives the logits": ((8, 8, 1), chain(CONV(1, 4, 3), RELU(), CONV(4, 3, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", range(3))
def test_other_networks_are_exact(name: str, seed: int) -> None:
    shape, network = NETWORKS[name]
    assert_equal(shaken(network, seed, shape), shape, 100, seed)


def test_another_image_and_sums_too_large_for_16_bits_are_one_line() -> None:
    with pytest.raises(ThimbleError, match="dense has 176 inputs, but pool has 275"):
        to_graph("net", QuantizedNetwork(Mnist2kb().build()), (32, 32, 1))

    def exported(*behind: nn.Module) -> Graph:
        wide = chain(nn.Flatten(), nn.Linear(14 * 14 * 3, 4), *behind)
        with torch.no_grad():
            wide.get_submodule("dense1").weight.fill_(1.0)
        network = QuantizedNetwork(wide)
        network.calibrate(network.pool(images(10, (28, 28, 3), 0)))
        return to_graph("net", network, (28, 28, 3))

    with pytest.raises(ThimbleError, match="dense1 sums 588 products"):
        exported(nn.ReLU(), nn.Linear(4, 2))
    last = exported()
    assert str(last.tensors[last.output].dtype) == "int32"


SHAPE = (28, 28, 1)


@pytest.mark.parametrize("images", [0, 50])
def test_weights_without_thresholds_get_the_best_ones(images: int) -> None:
    """Take weights of any training, on images or on pictures of nothing; the same ones again."""
    torch.manual_seed(4)
    model = Mnist2kb()
    weights = state_arrays(model.build())
    pixels = np.random.default_rng(0).integers(0, 256, (images, 28, 28, 1), np.uint8)
    first, again = (Int4().graph("a", model, weights, {"train_images": pixels}) for _ in range(2))
    assert first.hash == again.hash
    torch.random.manual_seed(9)
    assert Int4().graph("a", model, weights, {"train_images": pixels}).hash == first.hash
    for name, values in first.constants.items():
        if name.endswith("weight"):
            assert values.min() >= -8 and values.max() <= 7 and len(np.unique(values)) > 8
    with pytest.raises(ThimbleError, match="belong to another model"):
        Int4().graph("a", model, {"conv1.weight": weights["conv1.weight"]})


WITH_UNITS = Google12(input_shape=(28, 28, 1), joined=2, channels=(3, 4), units=(4,))


@pytest.mark.parametrize("model", [Mnist2kb(), WITH_UNITS], ids=["chain", "units"])
def test_a_network_survives_its_file(model: Model, tmp_path: Path) -> None:
    network = shaken(model.chain(), 1, SHAPE)
    write_npz(tmp_path / "weights.npz", to_arrays(network))
    again = from_arrays(model, read_npz(tmp_path / "weights.npz"))
    pooled = network.pool(images(50, SHAPE, 2))
    with torch.no_grad():
        assert torch.equal(again(pooled), network(pooled))


def test_names_are_layer_and_kind() -> None:
    """A unit has a threshold of its sum."""
    arrays = to_arrays(shaken(Mnist2kb().build(), 1, SHAPE))
    kinds = ("bias", "bias_log2", "out_log2", "weight", "weight_log2")
    expected = {f"{layer}.{kind}" for layer in ("conv1", "conv2", "conv3") for kind in kinds}
    expected |= {f"dense.{kind}" for kind in kinds if kind != "out_log2"}
    assert set(arrays) == expected
    assert {value.dtype for value in arrays.values()} == {np.dtype(np.float32)}
    units = shaken(WITH_UNITS.chain(), 1, SHAPE)
    assert {"unit1.out_log2", "unit1.first.weight", "unit1.second.out_log2"} <= {*to_arrays(units)}
    units.freeze()
    assert all(not t.requires_grad and float(t) % 1 == 0 for t in units.thresholds.values())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("conv1.weight", np.full((5, 1, 3, 3), np.inf), r"conv1\.weight is not finite"),
        ("conv2.out_log2", None, r"lack the threshold conv2\.out_log2"),
        ("conv2.out_log2", np.array(np.nan), r"lack the threshold conv2\.out_log2"),
        ("conv2.out_log2", np.zeros(3), r"lack the threshold conv2\.out_log2"),
    ],
)
def test_senseless_weights_and_thresholds(name: str, value: np.ndarray | None, said: str) -> None:
    arrays = to_arrays(shaken(Mnist2kb().build(), 1, SHAPE))
    del arrays[name]
    if value is not None:
        arrays[name] = value.astype(np.float32)
    with pytest.raises(ThimbleError, match=said):
        from_arrays(Mnist2kb(), arrays)


def conv(**options: object) -> nn.Conv2d:
    return nn.Conv2d(1, 2, 3, **options)  # type: ignore[arg-type]


END = (nn.Flatten(), nn.Linear(8, 3))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Sequential(conv()), "must start with a PixelPool"),
        (nn.Sequential(), "must start with a PixelPool"),
        (chain(conv(), nn.ReLU()), "must end with the layer that gives its logits"),
        (chain(), "must end with the layer that gives its logits"),
        (chain(conv(), *END), "after conv1: every Conv2d and Linear but the last"),
        (chain(conv(), nn.MaxPool2d(2), nn.ReLU(), *END), "after conv1"),
        (chain(conv(), nn.ReLU(), nn.ReLU(), *END), "after relu1"),
        (chain(conv(), nn.ReLU(), nn.BatchNorm2d(2), *END), "batchnorm2d1 is a BatchNorm2d"),
        (chain(conv(padding=1, padding_mode="reflect"), nn.ReLU(), *END), "pads with reflect"),
        (chain(conv(), nn.ReLU(), nn.MaxPool2d(2, padding=1), *END), "maxpool1 has padding"),
        (chain(conv(), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), *END), "maxpool1 has padding"),
    ],
)
def test_what_has_no_integer_counterpart_is_one_line(network: nn.Sequential, message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        check_layers(network)


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


@pytest.mark.parametrize("x", [-5.0, -1.0, -0.93, -0.4, 0.0, 0.06, 0.3, 0.87, 0.95, 3.0])
def test_gradients_are_those_of_the_paper(x: float) -> None:
    """TQT eq. 7 with t = 1 and s = 1/8: d y / d log2 t = s ln2 (round(x/s) - x/s), n or p."""
    step = 1 / 8
    rounded = round(x / step)
    value, threshold = (torch.tensor(each, requires_grad=True) for each in (x, 0.0))
    y = FORMATS[0].quantize(value, FORMATS[0].exponent(threshold))
    y.backward()
    if rounded < -8:
        expected = (-1.0, 0.0, -8 * step * math.log(2))
    elif rounded > 7:
        expected = (7 * step, 0.0, 7 * step * math.log(2))
    else:
        expected = (rounded * step, 1.0, step * math.log(2) * (rounded - x / step))
    assert (y, value.grad) == expected[:2]
    assert float(threshold.grad) == pytest.approx(expected[2], abs=1e-6)


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
    assert math.isfinite(form.best_log2(torch.zeros(5)))


LOG2 = st.floats(-20, 20)


@settings(max_examples=300)
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


def test_calibration_keeps_a_trained_looking_network_close() -> None:
    torch.manual_seed(0)
    plain = Mnist2kb().build()
    network = QuantizedNetwork(plain)
    pixels = images(300, (28, 28, 1), 9)
    with torch.no_grad():
        network.calibrate(network.pool(pixels))
        real, quantized = plain(pixels), network(network.pool(pixels))
    assert float((real - quantized).square().mean() / real.square().mean()) < 0.1


def test_calibration_keeps_sums_below_one() -> None:
    torch.manual_seed(0)
    unit, x = ResidualUnit(4, 4), torch.rand(64, 4, 8, 8) / 16
    quantized = QuantizedUnit(unit)
    with torch.no_grad():
        quantized.calibrate(x, -8.0)
        real, (found, _) = unit(x), quantized(x, -8.0)
    assert float((real - found).square().mean() / real.square().mean()) < 0.1


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
    weights, bias = np.full((1, 72), -8), np.array([0])  # a left shift counts
    check_sums("layer", weights, bias, BIT, PowerOfTwo(5))
    with pytest.raises(ThimbleError):
        check_sums("layer", weights, bias, U4, PowerOfTwo(2))
