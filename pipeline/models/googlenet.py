"""GoogLeNet (Szegedy et al. 2015, "Going Deeper with Convolutions", table 1), with normalization
of batches (Ioffe & Szegedy 2015) for that of local responses, and without the two classifiers that
only training uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeline.models.layers import classifier, convolution
from pipeline.models.network import Model

Widths = tuple[int, int, int, int, int, int]
"""Channels of 1x1, of what 3x3 reads and makes, of what 5x5 reads and makes, and after pooling."""

STAGES: tuple[tuple[Widths, ...], ...] = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)
"""Inception 3a and 3b, 4a to 4e, 5a and 5b."""


class Inception(nn.Module):
    """Four branches side by side (fig. 2b): (n, c_in, h, w) -> (n, c_out, h, w)."""

    def __init__(self, c_in: int, widths: Widths) -> None:
        super().__init__()
        one, before_three, three, before_five, five, pooled = widths
        self.one = _convolution(c_in, one)
        self.three = nn.Sequential(
            _convolution(c_in, before_three), _convolution(before_three, three, 3)
        )
        self.five = nn.Sequential(
            _convolution(c_in, before_five), _convolution(before_five, five, 5)
        )
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, padding=1), _convolution(c_in, pooled))
        self.c_out = one + three + five + pooled

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pooled(x)], dim=1)


def _convolution(c_in: int, c_out: int, kernel: int = 1, stride: int = 1) -> nn.Sequential:
    return convolution(c_in, c_out, kernel, stride, act="relu")


@dataclass(frozen=True)
class GoogLeNet(Model):
    """``width`` multiplies all channels but those of the input, rounded down."""

    input_shape: tuple[int, int, int] = (224, 224, 3)
    classes: int = 1000
    width: float = 1.0

    def build(self) -> nn.Sequential:
        network = nn.Sequential()
        first, second = self._wide(64), self._wide(192)
        network.add_module("conv1", _convolution(self.input_shape[2], first, 7, 2))
        network.add_module("pool1", nn.MaxPool2d(3, 2, padding=1))
        network.add_module("conv2", _convolution(first, first))
        network.add_module("conv3", _convolution(first, second, 3))
        c_in = second
        for stage, blocks in enumerate(STAGES, 3):
            network.add_module(f"pool{stage - 1}", nn.MaxPool2d(3, 2, padding=1))
            for letter, widths in zip("abcde", blocks, strict=False):
                one, two, three, four, five, six = map(self._wide, widths)
                block = Inception(c_in, (one, two, three, four, five, six))
                network.add_module(f"inception{stage}{letter}", block)
                c_in = block.c_out
        network.add_module("head", classifier(c_in, self.classes))
        return network

    def _wide(self, channels: int) -> int:
        return max(1, int(channels * self.width))
