from pathlib import Path

import pytest
import torch
import yaml

from pipeline import config
from pipeline.errors import ThimbleError
from pipeline.models.mnist_2kb import Mnist2kb


def test_the_yaml_is_the_published_network() -> None:
    model = config.instantiate(yaml.safe_load(Path("conf/model/mnist_2kb.yaml").read_text()))
    assert model == Mnist2kb()
    parameters = dict(model.build().named_parameters())
    assert sum(p.numel() for name, p in parameters.items() if name.endswith("weight")) == 2957
    assert sum(p.numel() for name, p in parameters.items() if name.endswith("bias")) == 34


def test_shapes_on_the_way() -> None:
    x, shapes = torch.zeros(1, 1, 28, 28), {}
    for name, layer in Mnist2kb().build().named_children():
        x = layer(x)
        shapes[name] = tuple(x.shape[1:])
    assert shapes["avg"] == (1, 14, 14)
    assert shapes["conv1"] == (5, 12, 12)
    assert shapes["conv2"] == (8, 10, 10)
    assert shapes["conv3"] == (11, 8, 8)
    assert shapes["maxpool"] == (11, 4, 4)
    assert shapes["dense"] == (10,)


def test_convolutions_start_orthogonal() -> None:
    weight = Mnist2kb().build().get_submodule("conv2").weight
    rows = weight.detach().reshape(8, -1)
    assert torch.allclose(rows @ rows.T, torch.eye(8), atol=1e-5)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (20, 36, 2)])
def test_other_images(shape: tuple[int, int, int]) -> None:
    network = Mnist2kb(input_shape=shape, classes=7, channels=(4, 6)).build()
    height, width, channels = shape
    assert network(torch.zeros(2, channels, height, width)).shape == (2, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": ()}, "at least one convolution"),
        ({"channels": (5, 0, 11)}, r"model\.channels=\[5, 0, 11\]"),
        ({"kernel": 0}, r"model\.kernel=0"),
        ({"classes": 0}, r"model\.classes=0"),
        ({"input_shape": (28, 28)}, r"model\.input_shape=\[28, 28\]"),
        ({"input_shape": (28, 0, 1)}, "height, width and channels"),
        ({"input_pool": 3}, "input pool of 3"),
    ],
)
def test_senseless_sizes_are_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        Mnist2kb(**options).build()  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"input_shape": (14, 14, 1)}, {"kernel": 7}])
def test_images_that_are_used_up_are_one_line(options: dict[str, object]) -> None:
    with pytest.raises(ThimbleError, match="at least 2x2 are needed"):
        Mnist2kb(**options).build()  # type: ignore[arg-type]
