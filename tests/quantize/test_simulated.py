import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.simulated import QuantizedLayer, QuantizedNetwork
from tests.quantize.nets import images, shaken

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


def test_activations_are_four_bit_multiples() -> None:
    network = shaken(Mnist2kb().build(), 3, (28, 28, 1))
    x, exponent = network.pool(images(20, (28, 28, 1), 4)), torch.tensor(-4.0)
    for layer in network.quantized.values():
        if layer.out_log2 is None:
            break
        x, exponent = layer(x, exponent)
        steps = x.detach() / 2.0 ** float(exponent.detach())
        assert torch.equal(steps, steps.round())
        assert float(steps.min()) >= 0 and float(steps.max()) <= 15


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


def test_layers_without_a_bias_get_one_of_zeros() -> None:
    layer = QuantizedLayer(nn.Linear(3, 2, bias=False), activated=False)
    assert layer.bias.tolist() == [0, 0]


@pytest.mark.parametrize("activated", [True, False])
def test_only_activated_layers_have_an_output_threshold(activated: bool) -> None:
    assert (QuantizedLayer(nn.Linear(3, 2), activated).out_log2 is not None) == activated
