from pathlib import Path

import pytest
import torch
import yaml
from torch import nn

from pipeline import config
from pipeline.errors import ThimbleError
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import ByteConv2d
from pipeline.models.small_cnn import SmallCnn


def of_yaml(name: str) -> SmallCnn:
    model: SmallCnn = config.instantiate(
        yaml.safe_load(Path(f"conf/model/{name}.yaml").read_text())
    )
    return model


def weights(model: SmallCnn) -> int:
    parameters = model.build().named_parameters()
    return sum(value.numel() for name, value in parameters if name.endswith("weight"))


def test_the_record_has_the_weights_it_says() -> None:
    assert of_yaml("record_mnist") == SmallCnn()
    assert weights(SmallCnn()) == 2853
    assert weights(of_yaml("record_mnist_flash")) == 23088
    assert weights(of_yaml("record_cifar10_flash")) == 16856
    assert weights(of_yaml("record_cifar10_2kb")) == 2236


def test_shapes_on_the_way() -> None:
    x, shapes = torch.zeros(1, 1, 28, 28), {}
    for name, layer in SmallCnn().build().named_children():
        x = layer(x)
        shapes[name] = tuple(x.shape[1:])
    assert shapes["avg"] == (1, 28, 28)
    assert shapes["conv1"] == (5, 12, 12)
    assert shapes["conv3"] == (8, 8, 8)
    assert shapes["maxpool3"] == (8, 4, 4)
    assert shapes["conv4"] == (16, 2, 2)
    assert shapes["dense"] == (10,)


def test_the_published_network_is_one_of_them() -> None:
    made = SmallCnn(convolutions=((5, 3, 1), (8, 3, 1), (11, 3, 1)), input_pool=2).build()
    wanted = Mnist2kb().build().state_dict()
    assert {name: value.shape for name, value in made.state_dict().items()} == {
        name: value.shape for name, value in wanted.items()
    }


def test_convolutions_start_orthogonal() -> None:
    weight = SmallCnn().build().get_submodule("conv2").weight
    rows = weight.detach().reshape(8, -1)
    assert torch.allclose(rows @ rows.T, torch.eye(8), atol=1e-5)


def test_other_images() -> None:
    model = SmallCnn(input_shape=(80, 64, 3), classes=7, pooled=(1,), input_pool=2)
    assert model.build()(torch.zeros(2, 3, 80, 64)).shape == (2, 7)


def test_depthwise_and_bytes() -> None:
    model = SmallCnn(convolutions=((5, 3, 2), (0, 3, 1), (7, 1, 1)), bits=(4, 8, 4), pooled=())
    first, apart, last = (layer for layer in model.build() if isinstance(layer, nn.Conv2d))
    assert (apart.groups, apart.out_channels, apart.weight.shape[1]) == (5, 5, 1)
    assert (first.groups, last.groups, last.in_channels) == (1, 1, 5)
    assert [isinstance(each, ByteConv2d) for each in (first, apart, last)] == [False, True, False]
    assert model.build()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"convolutions": ()}, "one at least is needed"),
        ({"convolutions": ((5, 3),)}, r"model\.convolutions=\[\[5, 3\]\]"),
        ({"convolutions": ((5, 0, 1),)}, r"model\.convolutions=\[\[5, 0, 1\]\]"),
        ({"bits": (4, 8)}, r"model\.bits=\[4, 8\]: 4 or 8 for each of the 4"),
        ({"bits": (4, 4, 4, 2)}, r"model\.bits=\[4, 4, 4, 2\]"),
        ({"pooled": (5,)}, r"model\.pooled=\[5\]: numbers of the 4 convolutions"),
        ({"pooled": (1, 2, 3)}, "nothing is left after conv3"),
        ({"input_pool": 3}, "input pool of 3"),
    ],
)
def test_senseless_sizes_are_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        SmallCnn(**options).build()  # type: ignore[arg-type]
