"""One layer or block by itself, with a classifier behind it: the cases of appendix C of Gural &
Murmann, "Memory-Optimal Direct Convolutions…" (2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.layers import classifier
from pipeline.models.network import Model

Block = Literal["convolution", "residual", "separable"]
BLOCKS = ("convolution", "residual", "separable")


class Residual(nn.Module):
    """C.4: x + conv(relu(conv(x)))."""

    def __init__(self, channels: int, kernel: tuple[int, int]) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, kernel, padding="same")
        self.second = nn.Conv2d(channels, channels, kernel, padding="same")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner: torch.Tensor = self.second(torch.relu(self.first(x)))
        return inner + x


@dataclass(frozen=True)
class OneBlock(Model):
    """
    Attributes:
        block: a convolution, a residual block of two, or a depthwise convolution, ``multiplier``
            outputs for each input channel, with a 1 × 1 behind it.
        kernel, stride: rows, columns.
        same: padding keeps the image's size, where the stride is 1.
        channels: outputs of a convolution, or of the 1 × 1.
    """

    block: Block = "convolution"
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    same: bool = False
    channels: int = 8
    multiplier: int = 1

    def build(self) -> nn.Sequential:
        if self.block not in BLOCKS:
            raise ThimbleError(f"model.block={self.block}: choose {', '.join(BLOCKS)}")
        depth = self.input_shape[2]
        (height, width), (down, right) = self.kernel, self.stride
        kernel, stride = (height, width), (down, right)
        padding = (height // 2, width // 2) if self.same else (0, 0)
        network = nn.Sequential()
        if self.block == "residual":
            network.add_module("block", Residual(depth, kernel))
        elif self.block == "separable":
            made = depth * self.multiplier
            depthwise = nn.Conv2d(depth, made, kernel, stride, padding, groups=depth)
            network.add_module("depthwise", depthwise)
            network.add_module("pointwise", nn.Conv2d(made, self.channels, 1))
        else:
            network.add_module("conv", nn.Conv2d(depth, self.channels, kernel, stride, padding))
        last = depth if self.block == "residual" else self.channels
        network.add_module("relu", nn.ReLU())
        network.add_module("head", classifier(last, self.classes))
        return network
