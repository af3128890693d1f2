"""AlexNet without groups (Krizhevsky et al. 2012; ungrouped as in SwapNN, Miao & Lin 2021).

62.4 M parameters, 1.14 G multiply-accumulates; one inference at 227x227 writes 0.78 MB of feature
maps in 8 bits. Local response normalization, which changes no shape, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import Model

CONVOLUTIONS = (
    (96, 11, 4, 0, True),
    (256, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)
"""(channels, kernel, stride, padding, whether a 3x3 maximum of stride 2 follows)"""

HIDDEN = (4096, 4096)


@dataclass(frozen=True)
class AlexNet(Model):
    input_shape: tuple[int, int, int] = (227, 227, 3)
    classes: int = 1000

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        network = nn.Sequential()
        for index, (channels, kernel, stride, padding, pooled) in enumerate(CONVOLUTIONS, 1):
            network.add_module(f"conv{index}", nn.Conv2d(depth, channels, kernel, stride, padding))
            network.add_module(f"relu{index}", nn.ReLU())
            height, width = (
                (size + 2 * padding - kernel) // stride + 1 for size in (height, width)
            )
            if pooled:
                network.add_module(f"pool{index}", nn.MaxPool2d(3, 2))
                height, width = (height - 3) // 2 + 1, (width - 3) // 2 + 1
            if min(height, width) < 1:
                raise ThimbleError("model: AlexNet needs at least 67x67 pixels")
            depth = channels
        network.add_module("flatten", nn.Flatten())
        features = height * width * depth
        for index, hidden in enumerate(HIDDEN, len(CONVOLUTIONS) + 1):
            network.add_module(f"dense{index}", nn.Linear(features, hidden))
            network.add_module(f"relu{index}", nn.ReLU())
            features = hidden
        network.add_module("output", nn.Linear(features, self.classes))
        return network
