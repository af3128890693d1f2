"""Keyword spotting from a spectrogram in 2 KB: Gural & Murmann 2019, table 2, "Google-12 2KB A".

The published network has 24 bins of 96 frames, a convolution that joins four frames, two of 3x3 and
two residual units. As its other convolutions, those of its units don't pad here: the sum takes the
middle of the unit's input (docs/keywords.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import Model, PixelPool, ResidualUnit


@dataclass(frozen=True)
class Google12(Model):
    """A spectrogram (frames, bins, 1) to ``classes``.

    Attributes:
        joined: frames that the first convolution makes one of.
        channels: of it, of a 3x3 convolution with stride 2, then of 3x3 convolutions; each with
            ReLU and no padding.
        units: channels of the residual units behind them.
        pooled: whether a 2x2 maximum comes before the dense layer.
    """

    input_shape: tuple[int, int, int] = (80, 20, 1)
    classes: int = 12
    joined: int = 4
    channels: tuple[int, ...] = (6, 24)
    units: tuple[int, ...] = (24, 24)
    pooled: bool = False

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        network = nn.Sequential()
        network.add_module("avg", PixelPool(1))
        sides = [height, width]
        for number, channels in enumerate(self.channels, 1):
            kernel = (self.joined, 1) if number == 1 else (3, 3)
            stride = (self.joined, 1) if number == 1 else (2, 2) if number == 2 else (1, 1)
            convolution = nn.Conv2d(depth, channels, kernel, stride)
            nn.init.orthogonal_(convolution.weight)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            network.add_module(f"conv{number}", convolution)
            network.add_module(f"relu{number}", nn.ReLU())
            sides = [(s - k) // by + 1 for s, k, by in zip(sides, kernel, stride, strict=True)]
            depth = channels
        for number, channels in enumerate(self.units, 1):
            network.add_module(f"unit{number}", ResidualUnit(depth, channels))
            sides = [side - 4 for side in sides]
            depth = channels
        if self.pooled:
            network.add_module("maxpool", nn.MaxPool2d(2))
            sides = [side // 2 for side in sides]
        if min(sides) < 1:
            raise ThimbleError(
                f"model: of {height} frames of {width} bins nothing is left for the dense layer: "
                "use fewer model.channels or model.units, or a larger model.input_shape"
            )
        network.add_module("flatten", nn.Flatten())
        network.add_module("dense", nn.Linear(sides[0] * sides[1] * depth, self.classes))
        return network
