"""A user's PyTorch network as a chain for 4 bits: any way to write it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from pipeline.errors import ThimbleError
from pipeline.importers.torch_chain import chain
from pipeline.importers.torch_model import TorchModel
from pipeline.models.network import PixelPool, state_arrays
from pipeline.quantize.int4 import Int4
from pipeline.strategies.herringbone import Herringbone
from tests.codegen.support import Native, agrees, uno


class Modules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shrink = nn.AvgPool2d(2)
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.drop = nn.Dropout(0.2)
        self.pool = nn.Linear(36, 5)  # a name that the chain has, too

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.features(self.shrink(x)))
        return self.pool(torch.flatten(x, 1))


class Functions(Modules):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.avg_pool2d(x, 2)
        x = functional.max_pool2d(functional.relu(self.features[0](x)), 2)
        return self.pool(x.flatten(1))


class Bare(nn.Module):
    """No average pool: every pixel by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 3, 3, stride=2), nn.Linear(147, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.conv(x).relu().flatten(1))


def model(name: str, **fields: Any) -> TorchModel:
    return TorchModel(input_shape=(16, 16, 1), factory=f"{__name__}:{name}", **fields)


def data() -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    images = np.random.default_rng(0).integers(0, 256, (64, 16, 16, 1), np.uint8)
    return {"train_images": images}


@pytest.mark.parametrize("name", ["Modules", "Functions", "Bare"])
def test_user_networks_go_to_the_uno(name: str, tmp_path: Path) -> None:
    """Quantized without a training: the C computes the integers, and these follow the network."""
    torch.manual_seed(3)
    found = model(name)
    network = found.build().eval()
    graph = Int4().graph("net", found, state_arrays(network), data())
    assert graph.tensors[graph.input].units == (1 / 255, 0)  # as ``found`` takes it: 0…1
    plan = Herringbone("slots").plan(graph, uno())
    assert agrees(Native(tmp_path, graph, plan, uno(), sanitize=False), 5)
    images = data()["train_images"]
    real = network(torch.from_numpy(images).permute(0, 3, 1, 2).float()).detach().numpy()
    integers = graph.outputs(images.astype(np.int64)) * graph.tensors[graph.output].scale[0]
    assert np.corrcoef(integers.reshape(-1), real.reshape(-1))[0, 1] > 0.9


def test_modules_and_functions_are_the_same_chain() -> None:
    torch.manual_seed(1)
    first = chain("a", Modules(), (0, 1))
    torch.manual_seed(1)
    second = chain("b", Functions(), (0, 1))
    assert [type(layer) for layer in first] == [type(layer) for layer in second]
    assert isinstance(first[0], PixelPool) and first[0].size == 2
    x = torch.rand(2, 1, 16, 16) * 255
    assert torch.equal(first.eval()(x), second.eval()(x))
    assert "pool_" in dict(first.named_children())
    assert chain("c", Bare(), (0, 1))[0].size == 1  # type: ignore[union-attr]


def test_a_range_from_0_is_in_the_first_weights() -> None:
    one, ten = Bare(), Bare()
    ten.load_state_dict(one.state_dict())
    plain, scaled = chain("a", one, (0, 1)), chain("a", ten, (0, 10))
    assert torch.equal(scaled.conv.weight, 10 * plain.conv.weight)  # type: ignore[operator, arg-type]
    with pytest.raises(ThimbleError, match=r"input_range=\[-1,1\]: 4-bit networks take"):
        chain("a", Bare(), (-1, 1))


class Residual(Bare):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + x.relu())


class Sigmoid(Bare):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.sigmoid(x))


class Branches(Bare):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if x.sum() > 0 else x


class Norm(Modules):
    def __init__(self) -> None:
        super().__init__()
        self.features[1] = nn.BatchNorm2d(4)


class Oblong(Modules):
    def __init__(self) -> None:
        super().__init__()
        self.shrink = nn.AvgPool2d(2, stride=1)


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (Residual, "makes it no chain of layers: Conv2d, Linear"),
        (Sigmoid, "sigmoid is not supported by quantize=int4: Conv2d"),
        (Branches, "quantize=int4 cannot trace it .TraceError"),
        (Norm, r"features.1 is a BatchNorm2d, which quantize=int4 does not have"),
        (Oblong, "the average pool that pixels arrive in is a square with a stride like it"),
    ],
)
def test_what_is_no_chain_is_one_line(network: type[nn.Module], said: str) -> None:
    with pytest.raises(ThimbleError, match=said) as caught:
        chain("net:Net", network(), (0, 1))
    assert "\n" not in str(caught.value) and "net:Net" in str(caught.value)
