"""ResNet18 (He et al. 2016, "Deep Residual Learning for Image Recognition", table 1), with
shortcuts of 1x1 convolutions where the shape changes (its option B), and smaller ones of that kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from pipeline.models.layers import classifier, convolution
from pipeline.models.network import Model


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut: (n, c_in, h, w) -> (n, c_out, h', w').

    ``plain``: shortcuts are not normalized, and all convolutions have biases.
    """

    def __init__(self, c_in: int, c_out: int, stride: int, plain: bool = False) -> None:
        super().__init__()
        self.body = nn.Sequential(
            convolution(c_in, c_out, 3, stride, act="relu", bias=plain),
            convolution(c_out, c_out, act=None, bias=plain),
        )
        self.shortcut: nn.Module = nn.Identity()
        if (c_in, 1) != (c_out, stride):
            matched = nn.Conv2d if plain else partial(convolution, act=None)
            self.shortcut = matched(c_in, c_out, 1, stride)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.relu(self.body(x) + self.shortcut(x))
        return y


@dataclass(frozen=True)
class ResNet18(Model):
    """ResNet18, and networks like it; all stages but the first halve the image.

    Attributes:
        channels: of each stage.
        blocks: residual blocks in each stage.
        stem: kernel and stride of the first convolution.
        pooled: a 3x3 maximum of stride 2 follows it.
    """

    input_shape: tuple[int, int, int] = (224, 224, 3)
    classes: int = 1000
    channels: tuple[int, ...] = (64, 128, 256, 512)
    blocks: int = 2
    stem: tuple[int, int] = (7, 2)
    pooled: bool = True

    def build(self) -> nn.Sequential:
        c_in, (kernel, stride) = self.channels[0], self.stem
        network = nn.Sequential()
        network.add_module(
            "stem", convolution(self.input_shape[2], c_in, kernel, stride, act="relu")
        )
        if self.pooled:
            network.add_module("pool", nn.MaxPool2d(3, 2, padding=1))
        for stage, c_out in enumerate(self.channels, 1):
            for block in range(1, self.blocks + 1):
                stride = 2 if block == 1 < stage else 1
                network.add_module(f"stage{stage}_{block}", BasicBlock(c_in, c_out, stride))
                c_in = c_out
        network.add_module("head", classifier(c_in, self.classes))
        return network
