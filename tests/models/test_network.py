"""What all networks share: pools of pixels, sizes that follow weights, data that fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.datasets.cifar10 import parse
from pipeline.datasets.dataset import parts_of
from pipeline.datasets.nothing import Nothing
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import PixelPool, loaded, resized, state_arrays
from pipeline.models.resnet8 import ResNet8


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_the_pixel_pool_is_the_integer_one(size: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (50, 3, 16, 16))
    pixels[0], pixels[1] = 255, 0
    pixels[1, :, 0, 0] = 63
    blocks = pixels.reshape(50, 3, 16 // size, size, 16 // size, size)
    expected = blocks.sum((3, 5)) // (16 * size**2)
    pooled = PixelPool(size)(torch.from_numpy(pixels).float()) * 16
    assert (pooled.numpy() == expected).all()
    assert expected.max() == 15


def test_a_network_takes_the_size_of_its_weights() -> None:
    small = Mnist2kb(channels=(3, 4, 5)).build()
    content = state_arrays(small)
    before = {name: value.copy() for name, value in content.items()}
    grown = resized(Mnist2kb().build(), content)
    images = torch.rand(2, 1, 28, 28) * 255
    assert torch.equal(grown(images), small(images))
    assert grown.get_submodule("conv2").in_channels == 3
    assert grown.get_submodule("dense").in_features == 4 * 4 * 5
    with torch.no_grad():
        for parameter in grown.parameters():
            parameter.add_(1)
    assert all((content[name] == before[name]).all() for name in content), "trained along"


def test_any_network_takes_its_own_arrays() -> None:
    model = ResNet8(input_shape=(16, 16, 3))
    first, second = model.build(), model.build()
    content = state_arrays(first)
    assert content["stem.norm.running_mean"].shape == (16,)
    images = torch.rand(2, 3, 16, 16)
    extra = content | {"accuracy_float": np.array(0.5)}
    assert torch.equal(loaded(second, extra).eval()(images), first.eval()(images))


def test_no_images_and_those_of_cifar_10_fit() -> None:
    """A record in the set's own format."""
    Mnist2kb().check(Nothing().arrays())
    split = parse(bytes([9]) + bytes(range(256)) * 12)
    for data in (Nothing().arrays(), parts_of(split, split, split)):
        ResNet8().check(data)
