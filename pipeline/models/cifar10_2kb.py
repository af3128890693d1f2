"""Images in colour in 2 KB of activations: Gural & Murmann 2019, table 2, "CIFAR-10 2KB A".

As the published network's other convolutions, those of its residual unit don't pad here: the sum
takes the middle of the unit's input.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from pipeline.models.network import Model, PixelPool, ResidualUnit


@dataclass(frozen=True)
class Cifar10(Model):
    """
    Attributes:
        channels: of the first convolution, 2x2 with stride 2, and of the residual unit.
        multiplier: channels that the depthwise convolution makes of one.
        features: channels of the 1x1 convolution behind it.
    """

    input_shape: tuple[int, int, int] = (32, 32, 3)
    channels: int = 12
    multiplier: int = 5
    features: int = 80

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        wide = self.channels * self.multiplier
        convolutions = [
            nn.Conv2d(depth, self.channels, 2, 2),
            nn.Conv2d(self.channels, wide, 3, groups=self.channels),
            nn.Conv2d(wide, self.features, 1),
        ]
        for convolution in convolutions:
            nn.init.orthogonal_(convolution.weight)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
        rows, columns = ((side // 2 - 4) // 2 - 2 for side in (height, width))
        return nn.Sequential(
            OrderedDict(
                avg=PixelPool(1),
                conv1=convolutions[0],
                relu1=nn.ReLU(),
                unit1=ResidualUnit(self.channels, self.channels),
                maxpool=nn.MaxPool2d(2),
                depthwise=convolutions[1],
                relu2=nn.ReLU(),
                pointwise=convolutions[2],
                relu3=nn.ReLU(),
                flatten=nn.Flatten(),
                dense=nn.Linear(rows * columns * self.features, self.classes),
            )
        )
