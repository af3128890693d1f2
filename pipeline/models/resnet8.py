"""ResNet8: the image classification network of MLPerf Tiny, for CIFAR-10 (Banbury et al. 2021,
"MLPerf Tiny Benchmark", arXiv 2106.07597). 12,501,632 multiply-accumulates; 78,666 values with the
moving statistics. Shortcuts between stages are 1x1 convolutions without normalization, as there.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from pipeline.models.layers import classifier, convolution
from pipeline.models.network import Model


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut: (n, c_in, h, w) -> (n, c_out, h', w')."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            convolution(c_in, c_out, 3, stride, act="relu", bias=True),
            convolution(c_out, c_out, act=None, bias=True),
        )
        self.shortcut = (
            nn.Conv2d(c_in, c_out, 1, stride) if (c_in, 1) != (c_out, stride) else nn.Identity()
        )
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        result: Tensor = self.relu(y + self.shortcut(x))
        return result


@dataclass(frozen=True)
class ResNet8(Model):
    """One residual block for each of ``channels``; all but the first halve the image."""

    input_shape: tuple[int, int, int] = (32, 32, 3)
    classes: int = 10
    channels: tuple[int, ...] = (16, 32, 64)

    def build(self) -> nn.Sequential:
        c_in = self.channels[0]
        network = nn.Sequential()
        network.add_module("stem", convolution(self.input_shape[2], c_in, act="relu", bias=True))
        for index, c_out in enumerate(self.channels):
            network.add_module(f"stage{index + 1}", Residual(c_in, c_out, 1 if index == 0 else 2))
            c_in = c_out
        network.add_module("head", classifier(c_in, self.classes))
        return network
