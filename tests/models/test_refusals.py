"""Sizes, options and data that no network can have: one line that names the key."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.models.blocks import Blocks
from pipeline.models.layers import activation
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import PixelPool, loaded, resized, state_arrays
from pipeline.models.resnet8 import ResNet8
from tests.models.counting import member

BUILT: list[tuple[str, dict[str, Any], str]] = [
    ("mnist_2kb", {"channels": ()}, "at least one convolution"),
    ("mnist_2kb", {"channels": (5, 0, 11)}, r"model\.channels=\[5, 0, 11\]"),
    ("mnist_2kb", {"kernel": 0}, r"model\.kernel=0"),
    ("mnist_2kb", {"classes": 0}, r"model\.classes=0"),
    ("mnist_2kb", {"input_shape": (28, 28)}, r"model\.input_shape=\[28, 28\]"),
    ("mnist_2kb", {"input_shape": (28, 0, 1)}, "height, width and channels"),
    ("mnist_2kb", {"kernel": 7}, "nothing is left after conv3"),
    ("record_mnist", {"convolutions": ()}, "one at least is needed"),
    ("record_mnist", {"convolutions": ((5, 3),)}, r"model\.convolutions=\[\[5, 3\]\]"),
    ("record_mnist", {"convolutions": ((5, 0, 1),)}, r"model\.convolutions=\[\[5, 0, 1\]\]"),
    ("record_mnist", {"bits": (4, 8)}, r"model\.bits=\[4, 8\]: 4 or 8 for each of the 4"),
    ("record_mnist", {"bits": (4, 4, 4, 2)}, r"model\.bits=\[4, 4, 4, 2\]"),
    ("record_mnist", {"pooled": (5,)}, r"model\.pooled=\[5\]: numbers of the 4 convolutions"),
    ("record_mnist", {"pooled": (1, 2, 3)}, "nothing is left after conv3"),
    ("record_mnist", {"input_pool": 3}, "input pool of 3"),
    ("google12", {"input_shape": (80, 12, 1)}, r"80 frames of 12 bins nothing is left.*\.units"),
    ("time_channel", {"kernel": 4}, r"model\.kernel=4 has to be odd"),
    ("one_block", {"block": "dense"}, "model.block=dense: choose convolution, residual"),
    ("res8", {"pool": (50, 1)}, r"model\.pool=\[50, 1\] is larger than the 49x10"),
    ("lenet5", {"input_shape": (8, 28, 1)}, "at least 12x12 pixels, not 8x28"),
    ("alexnet", {"input_shape": (66, 227, 3)}, "at least 67x67"),
    ("vgg16", {"input_shape": (31, 32, 3)}, "at least 32x32 pixels, not 31x32"),
    ("vit_mnist", {"patch": (5, 4)}, r"model\.patch=\[5, 4\] has to divide"),
    ("vit_mnist", {"heads": 5}, r"model\.heads=5 has to divide"),
    ("ds_cnn_s", {"channels": ()}, r"model\.channels=\[\]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "said"), BUILT)
def test_sizes(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        member(name, **options).build()


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"kind": "mbcov", "channels": 8}, r"blocks\[0\]: kind has to be one of conv, separable"),
        ({"channels": 8}, "kind has to be one of"),
        ("mbconv", "kind has to be one of.*'mbconv'"),
        ({"kind": "mbconv", "chanels": 8}, "mbconv has no 'chanels'; it has channels, kernel"),
        ({"kind": "conv"}, "channels=None has to be a number"),
        ({"kind": "conv", "channels": 0}, "channels=0 has to be"),
        ({"kind": "conv", "channels": 8, "kernel": 2.5}, r"kernel=2\.5 has to be"),
        ({"kind": "conv", "channels": 8, "kernel": 4}, "has to be odd, not 4"),
        ({"kind": "conv", "channels": 8, "repeat": 0}, "repeat=0"),
        ({"kind": "mbconv", "channels": 8, "expand": (3, 3), "repeat": 3}, "or a list of 3"),
        ({"kind": "mbconv", "channels": 8, "expand": 0}, "expand=0 has to be"),
        ({"kind": "maxpool", "kernel": 40}, r"blocks\[0\]: nothing is left of the maxpool's input"),
        (None, r"model\.blocks is empty"),
    ],
)
def test_blocks(block: Any, said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        Blocks((32, 24, 3), 5, (block,) if block else ()).build()


def test_pools_of_pixels_activations_and_chains() -> None:
    for size in (0, 3, 16):
        with pytest.raises(ThimbleError, match=f"input pool of {size}"):
            PixelPool(size)
    with pytest.raises(ThimbleError, match="no activation 'gelu'; there are hardswish, relu"):
        activation("gelu")
    assert Mnist2kb().chain()[0].size == 2
    with pytest.raises(ThimbleError, match=r"ResNet8 is no chain.*quantize=int8"):
        ResNet8().chain()


def test_data_of_another_shape_or_with_more_labels() -> None:
    data = Synthetic(shape=(32, 32, 3)).arrays()
    with pytest.raises(ThimbleError, match=r"32x32x3.*28x28x1.*model\.input_shape=\[32,32,3\]"):
        Mnist2kb().check(data)
    Mnist2kb(input_shape=(32, 32, 3)).check(data)
    with pytest.raises(ThimbleError, match=r"label 11.*10 outputs.*model\.classes=12"):
        Mnist2kb().check(Synthetic(classes=12).arrays())


RESNET = ResNet8(input_shape=(16, 16, 3))


@pytest.mark.parametrize(
    ("model", "load", "name", "value", "said"),
    [
        (Mnist2kb(), resized, "conv2.bias", None, r"lack 'conv2\.bias'"),
        (Mnist2kb(), resized, "conv1.weight", np.zeros((5, 9)), "the weights of conv1 have shape"),
        (Mnist2kb(), resized, "dense.bias", np.zeros(9), "the weights of dense have shape"),
        (RESNET, loaded, "stem.conv.bias", None, r"lack 'stem\.conv\.bias'"),
        (RESNET, loaded, "stem.conv.bias", np.zeros(3),
         r"stem\.conv\.bias have shape \(3,\), the model's \(16"),
        (RESNET, loaded, "stem.conv.bias", np.full(16, np.nan), r"stem\.conv\.bias is not finite"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit(
    model: Any, load: Callable[..., Any], name: str, value: Any, said: str
) -> None:
    network = model.build()
    content = state_arrays(network)
    del content[name]
    if value is not None:
        content[name] = value.astype(np.float32)
    with pytest.raises(ThimbleError, match=said):
        load(network, content)
