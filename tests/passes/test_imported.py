"""Passes on networks as importers make them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pipeline import passes
from pipeline.graph.operators.pad import Pad
from pipeline.importers.torch_export import exported
from pipeline.quantize.int8 import Int8
from tests.comparing import equal
from tests.passes.test_passes import ALL


class BlazeBlock(nn.Module):
    """BlazeFace's block: the shortcut has fewer channels and is padded with zeros (Bazarevsky et
    al. 2019)."""

    def __init__(self, channels: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride, self.more = stride, outputs - channels
        self.depthwise = nn.Conv2d(channels, channels, 3, stride, 1, groups=channels)
        self.pointwise = nn.Conv2d(channels, outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        way = self.pointwise(self.depthwise(x))
        shortcut = F.pad(x, (0, 0, 0, 0, 0, self.more))
        return F.relu(way + (F.max_pool2d(shortcut, self.stride) if self.stride > 1 else shortcut))


class Widened(nn.Module):
    """More channels, of zeros, in front of a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 5, 3), nn.Conv2d(8, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.pad(F.relu(self.first(x)), (0, 0, 0, 0, 1, 2)))


def blaze() -> nn.Module:
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), BlazeBlock(6, 8, 1), BlazeBlock(8, 12, 2),
        nn.Flatten(), nn.Linear(12 * 16, 4),
    )  # fmt: skip
    with torch.no_grad():
        network[0].weight[2] = 0  # a channel that holds its bias everywhere
    return network


@pytest.mark.parametrize("make", [blaze, Widened])
def test_channels_that_are_padded(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    graph = Int8(images=4).from_float(exported("net", make(), torch.zeros(1, 3, 8, 8)))
    assert any(isinstance(op, Pad) for op in graph.operators)
    frames = np.random.default_rng(0).integers(-128, 128, (20, 8, 8, 3))
    for names in [*([name] for name in ALL), ALL]:
        after = passes.applied(graph, names)
        equal(after.outputs(frames), graph.outputs(frames))
