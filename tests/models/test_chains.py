"""Networks for 4 bits: their published weights, shapes on the way, units that are sums."""

from typing import Any

import pytest
import torch
from torch import nn

from pipeline.models.cifar10_2kb import Cifar10
from pipeline.models.google12 import Google12
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import ByteConv2d, ResidualUnit
from pipeline.models.small_cnn import SmallCnn
from tests.models.counting import member


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("mnist_2kb", 2957), ("record_mnist", 2853), ("record_mnist_flash", 23088),
        ("record_cifar10_flash", 16856), ("record_cifar10_2kb", 2236),
        ("cifar10_2kb", 20876),
    ],
)  # fmt: skip
def test_a_yaml_is_the_network_that_it_says(name: str, weights: int) -> None:
    model = member(name)
    parameters = model.build().named_parameters()
    assert sum(value.numel() for name, value in parameters if name.endswith("weight")) == weights
    defaults = {"mnist_2kb": Mnist2kb(), "record_mnist": SmallCnn()}
    assert model == defaults.get(name, model)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Mnist2kb(), [(1, 14, 14), (5, 12, 12), (8, 10, 10), (11, 8, 8), (11, 4, 4)]),
        (SmallCnn(), [(1, 28, 28), (5, 12, 12), (8, 10, 10), (8, 8, 8), (8, 4, 4), (16, 2, 2)]),
        (Google12((96, 24, 1), channels=(6, 24, 28), units=(28, 40)),
         [(1, 96, 24), (6, 24, 24), (24, 11, 11), (28, 9, 9), (28, 5, 5), (40, 1, 1)]),
        (Cifar10(),
         [(3, 32, 32), (12, 16, 16), (12, 12, 12), (12, 6, 6), (60, 4, 4), (80, 4, 4)]),
    ],
    ids=lambda item: type(item).__name__,
)  # fmt: skip
def test_shapes_on_the_way(model: Any, expected: list[tuple[int, ...]]) -> None:
    x, shapes = model.example(), []
    for layer in model.chain():
        x = layer(x)
        if x.ndim == 4 and not isinstance(layer, nn.ReLU):
            shapes.append(tuple(x.shape[1:]))
    assert shapes == expected and x.shape == (1, model.classes)


def test_convolutions_start_orthogonal() -> None:
    weight = SmallCnn().build().get_submodule("conv2").weight
    rows = weight.detach().reshape(8, -1)
    assert torch.allclose(rows @ rows.T, torch.eye(8), atol=1e-5)


def test_depthwise_and_bytes() -> None:
    model = SmallCnn(convolutions=((5, 3, 2), (0, 3, 1), (7, 1, 1)), bits=(4, 8, 4), pooled=())
    first, apart, last = (layer for layer in model.build() if isinstance(layer, nn.Conv2d))
    assert (apart.groups, apart.out_channels, apart.weight.shape[1]) == (5, 5, 1)
    assert (first.groups, last.groups, last.in_channels) == (1, 1, 5)
    assert [isinstance(each, ByteConv2d) for each in (first, apart, last)] == [False, True, False]
    assert model.build()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_a_unit_adds_the_middle_of_its_input() -> None:
    unit, x = ResidualUnit(3, 3), torch.rand(2, 3, 9, 8)
    with torch.no_grad():
        for parameter in unit.second.parameters():
            parameter.zero_()
        assert (unit(x) == x[:, :, 2:7, 2:6]).all()
    unit, x = ResidualUnit(2, 3), torch.rand(1, 2, 5, 6)
    assert unit.matched is not None and unit(x).shape == (1, 3, 1, 2)
