"""RES-8 and RES-15: residual networks for keyword spotting (Tang & Lin 2018, arXiv 1710.10361).

45 feature maps, 3x3 convolutions without bias, 12 outputs. RES-8: 4x3 average pooling and three
residual blocks, 110 K parameters; RES-15: dilations that double every three convolutions, 238 K.
The input is Pex's 49x10 (66,150 B is three times 49x10x45), not the original's 101x40.

Here normalization comes before the ReLU, where it folds into the convolution, and the first
convolution has it, too, as inputs are 0...255; the original has it after the ReLU, where it would
cost a pass over the tensor, and not after the first. Pex's figures hold for both.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from pipeline.errors import ThimbleError
from pipeline.models.layers import classifier
from pipeline.models.network import Model

BLOCK_CONVOLUTIONS = 2


class ResidualPair(nn.Module):
    """Two convolutions with ReLU, then the sum with what the first one read."""

    def __init__(self, channels: int, dilations: list[int]) -> None:
        super().__init__()
        self.body = nn.Sequential(*(unit(channels, channels, dilation) for dilation in dilations))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + y


def unit(depth: int, channels: int, dilation: int = 1) -> nn.Sequential:
    """Convolution, normalization without parameters of its own, ReLU: height and width stay."""
    convolution = nn.Conv2d(depth, channels, 3, 1, dilation, dilation, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(channels, affine=False), nn.ReLU())


@dataclass(frozen=True)
class Res(Model):
    """A residual network for keywords: convolutions of one number of channels.

    Attributes:
        channels: of every convolution.
        convolutions: how many after the first one.
        dilated: number i of them (from 0) reaches 2**(i // 3) pixels.
        pool: window (h, w) of an average after the first one; [1,1] for none.
    """

    input_shape: tuple[int, int, int] = (49, 10, 1)
    classes: int = 12
    channels: int = 45
    convolutions: int = 6
    dilated: bool = False
    pool: tuple[int, int] = (1, 1)

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        if height < self.pool[0] or width < self.pool[1]:
            raise ThimbleError(
                f"model.pool={list(self.pool)} is larger than the {height}x{width} input"
            )
        network = nn.Sequential()
        network.add_module("first", unit(depth, self.channels))
        if self.pool != (1, 1):
            network.add_module("pool", nn.AvgPool2d(self.pool))
        dilations = [2 ** (i // 3) if self.dilated else 1 for i in range(self.convolutions)]
        paired = self.convolutions - self.convolutions % BLOCK_CONVOLUTIONS
        for begin in range(0, paired, BLOCK_CONVOLUTIONS):
            pair = ResidualPair(self.channels, dilations[begin : begin + BLOCK_CONVOLUTIONS])
            network.add_module(f"block{begin // BLOCK_CONVOLUTIONS + 1}", pair)
        for dilation in dilations[paired:]:
            network.add_module("last", unit(self.channels, self.channels, dilation))
        network.add_module("head", classifier(self.channels, self.classes))
        return network
