"""VGG16 (Simonyan & Zisserman 2015, arXiv 1409.1556, configuration D): 138 M parameters (table 2).

15.47 G multiply-accumulates at 224x224; one inference writes 15.09 MB of feature maps in 8 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import Model

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the 3x3 convolutions; a 2x2 maximum ends each stage."""

HIDDEN = (4096, 4096)


@dataclass(frozen=True)
class Vgg16(Model):
    input_shape: tuple[int, int, int] = (224, 224, 3)
    classes: int = 1000

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        if min(height, width) < 2 ** len(STAGES):
            raise ThimbleError(f"model: VGG16 needs at least 32x32 pixels, not {height}x{width}")
        network = nn.Sequential()
        for stage, widths in enumerate(STAGES, 1):
            for index, channels in enumerate(widths, 1):
                network.add_module(f"conv{stage}_{index}", nn.Conv2d(depth, channels, 3, padding=1))
                network.add_module(f"relu{stage}_{index}", nn.ReLU())
                depth = channels
            network.add_module(f"pool{stage}", nn.MaxPool2d(2))
            height, width = height // 2, width // 2
        network.add_module("flatten", nn.Flatten())
        features = height * width * depth
        for index, hidden in enumerate(HIDDEN, 1):
            network.add_module(f"dense{index}", nn.Linear(features, hidden))
            network.add_module(f"relu_dense{index}", nn.ReLU())
            features = hidden
        network.add_module("output", nn.Linear(features, self.classes))
        return network
