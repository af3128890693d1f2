import numpy as np
import pytest
import torch
from torch import nn

from pipeline.datasets.cifar10 import parse
from pipeline.datasets.dataset import parts_of
from pipeline.datasets.nothing import Nothing
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import PixelPool, loaded, resized, state_arrays
from pipeline.models.resnet8 import ResNet8


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_the_pixel_pool_is_the_integer_one(size: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (50, 3, 16, 16))
    blocks = pixels.reshape(50, 3, 16 // size, size, 16 // size, size)
    expected = blocks.sum((3, 5)) // (16 * size**2)
    pooled = PixelPool(size)(torch.from_numpy(pixels).float()) * 16
    assert (pooled.numpy() == expected).all()
    assert expected.max() <= 15


def test_the_pixel_pool_keeps_extremes() -> None:
    assert float(PixelPool(2)(torch.full((1, 1, 2, 2), 255.0))) == 15 / 16
    assert float(PixelPool(2)(torch.tensor([[[[63.0, 0.0], [0.0, 0.0]]]]))) == 0


@pytest.mark.parametrize("size", [0, 3, 16])
def test_other_pools_are_one_line(size: int) -> None:
    with pytest.raises(ThimbleError, match=f"input pool of {size}"):
        PixelPool(size)


def test_images_of_another_shape_are_one_line() -> None:
    data = Synthetic(shape=(32, 32, 3)).arrays()
    with pytest.raises(ThimbleError, match=r"32x32x3.*28x28x1.*model\.input_shape=\[32,32,3\]"):
        Mnist2kb().check(data)
    Mnist2kb(input_shape=(32, 32, 3)).check(data)


def test_more_labels_than_outputs_are_one_line() -> None:
    data = Synthetic(classes=12).arrays()
    with pytest.raises(ThimbleError, match=r"label 11.*10 outputs.*model\.classes=12"):
        Mnist2kb().check(data)


def arrays(network: nn.Sequential) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def test_a_network_takes_the_size_of_its_weights() -> None:
    small = Mnist2kb(channels=(3, 4, 5)).build()
    loaded = resized(Mnist2kb().build(), arrays(small))
    images = torch.rand(2, 1, 28, 28) * 255
    assert torch.equal(loaded(images), small(images))
    assert loaded.get_submodule("conv2").in_channels == 3
    assert loaded.get_submodule("dense").in_features == 4 * 4 * 5


def test_weights_of_another_model_are_one_line() -> None:
    content = arrays(Mnist2kb().build())
    without = {name: value for name, value in content.items() if name != "conv2.bias"}
    with pytest.raises(ThimbleError, match=r"lack 'conv2\.bias'"):
        resized(Mnist2kb().build(), without)
    with pytest.raises(ThimbleError, match="the weights of conv1 have shape"):
        resized(Mnist2kb().build(), content | {"conv1.weight": np.zeros((5, 9), np.float32)})
    with pytest.raises(ThimbleError, match="the weights of dense have shape"):
        resized(Mnist2kb().build(), content | {"dense.bias": np.zeros(9, np.float32)})


def test_training_a_loaded_network_leaves_the_arrays_alone() -> None:
    content = arrays(Mnist2kb().build())
    before = {name: value.copy() for name, value in content.items()}
    with torch.no_grad():
        for parameter in resized(Mnist2kb().build(), content).parameters():
            parameter.add_(1)
    assert all((content[name] == before[name]).all() for name in content)


def test_any_network_takes_its_own_arrays() -> None:
    model = ResNet8(input_shape=(16, 16, 3))
    first, second = model.build(), model.build()
    content = state_arrays(first)
    assert content["stem.norm.running_mean"].shape == (16,)
    images = torch.rand(2, 3, 16, 16)
    extra = content | {"accuracy_float": np.array(0.5)}
    assert torch.equal(loaded(second, extra).eval()(images), first.eval()(images))


def test_arrays_that_do_not_fit_are_one_line() -> None:
    network = ResNet8(input_shape=(16, 16, 3)).build()
    content = state_arrays(network)
    without = {name: value for name, value in content.items() if name != "stem.conv.bias"}
    with pytest.raises(ThimbleError, match=r"lack 'stem\.conv\.bias'"):
        loaded(network, without)
    with pytest.raises(ThimbleError, match=r"stem\.conv\.bias have shape \(3,\), the model's \(16"):
        loaded(network, content | {"stem.conv.bias": np.zeros(3, np.float32)})
    with pytest.raises(ThimbleError, match=r"stem\.conv\.bias is not finite"):
        loaded(network, content | {"stem.conv.bias": np.full(16, np.nan, np.float32)})


def test_only_chains_have_a_chain() -> None:
    assert Mnist2kb().chain()[0].size == 2
    with pytest.raises(ThimbleError, match=r"ResNet8 is no chain.*quantize=int8"):
        ResNet8().chain()


def test_no_images_fit_every_network() -> None:
    Mnist2kb().check(Nothing().arrays())
    ResNet8().check(Nothing().arrays())


def test_cifar_10_fits_resnet8() -> None:
    """A record in the set's own format; and the reverse: the message says what to set."""
    split = parse(bytes([9]) + bytes(range(256)) * 12)
    ResNet8().check(parts_of(split, split, split))
    with pytest.raises(ThimbleError, match=r"32x32x3.*28x28x1.*model\.input_shape=\[32,32,3\]"):
        Mnist2kb().check(parts_of(split, split, split))
