"""From torch.export to C: a residual network's labels are those of PyTorch's own quantized one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.datasets.synthetic import Synthetic
from pipeline.importers.lower import lower
from pipeline.importers.torch_export import exported
from pipeline.models.network import Model
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.predictor import Predictor
from tests.codegen.affine.support import host
from tests.quantize.torch_network import outputs

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per", "ignore:torch.ao")


class Residual(nn.Module):
    """Convolutions with batch norms, a shortcut as it is and one of 1x1, pools, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8))
        self.pool = nn.MaxPool2d(2)
        self.first = nn.Sequential(
            nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8),
        )  # fmt: skip
        self.second = nn.Sequential(
            nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
        )  # fmt: skip
        self.shortcut = nn.Conv2d(8, 16, 1, 2)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.stem(x / 255)))
        x = torch.relu(x + self.first(x))
        return self.head(torch.relu(self.second(x) + self.shortcut(x)))


@dataclass(frozen=True)
class Own(Model):
    def build(self) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return Residual()


@pytest.fixture(scope="module")
def data() -> Arrays:
    return Synthetic(train=1500, validation=100, test=2000).arrays()


@pytest.fixture(scope="module")
def trained(data: Arrays) -> nn.Module:
    """Seconds of training."""
    net, labels = Own().build().train(), torch.from_numpy(data["train_labels"]).long()
    images = torch.from_numpy(data["train_images"]).permute(0, 3, 1, 2).float()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    rising = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=4 * 15)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        for batch in torch.randperm(len(labels), generator=generator).split(100):
            loss = nn.functional.cross_entropy(net(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rising.step()
    return net.eval()


def test_labels_are_those_of_pytorchs_quantized_network(trained: nn.Module, data: Arrays) -> None:
    network, affines = Int8().calibration(exported("net", trained, Own().example()), data)
    graph = lower(network, affines)
    frames = data["test_images"].astype(np.int64) - 128
    native = Predictor.build(graph, Ordinary().plan(graph, host()), host())
    ours = native.predict(frames.astype(np.int8)).reshape(len(frames), -1)
    assert (ours[:200] == graph.outputs(frames[:200])).all()
    theirs = outputs(network, affines, graph, frames)
    assert np.abs(ours - theirs).max() <= 2  # units, though roundings differ in every layer
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.995
    assert (ours.argmax(1) == data["test_labels"]).mean() > 0.9  # it learnt something
    with torch.no_grad():
        exact = trained(torch.from_numpy(data["test_images"]).permute(0, 3, 1, 2).float())
    assert (ours.argmax(1) == exact.argmax(1).numpy()).mean() >= 0.995
