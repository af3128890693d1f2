"""LeNet-5 (LeCun et al. 1998, "Gradient-based learning applied to document recognition", fig. 2).

28x28 images padded to the original's 32x32. As it is usually built today: C3 reads all maps of S2,
pooling is a plain average and the output is dense: 61,706 parameters, 416,520 multiply-accumulates.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.layers import activation
from pipeline.models.network import Model


@dataclass(frozen=True)
class LeNet5(Model):
    """LeNet-5; ``activation`` follows convolutions and dense layers."""

    activation: str = "tanh"

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        rows, columns = ((size // 2 - 4) // 2 for size in (height, width))
        if min(rows, columns) < 1:
            raise ThimbleError(f"model: LeNet-5 needs at least 12x12 pixels, not {height}x{width}")
        network = nn.Sequential()
        for name, layer in (
            ("c1", nn.Conv2d(depth, 6, 5, padding=2)),
            ("act1", activation(self.activation)),
            ("s2", nn.AvgPool2d(2)),
            ("c3", nn.Conv2d(6, 16, 5)),
            ("act3", activation(self.activation)),
            ("s4", nn.AvgPool2d(2)),
            ("flatten", nn.Flatten()),
            ("c5", nn.Linear(16 * rows * columns, 120)),
            ("act5", activation(self.activation)),
            ("f6", nn.Linear(120, 84)),
            ("act6", activation(self.activation)),
            ("output", nn.Linear(84, self.classes)),
        ):
            network.add_module(name, layer)
        return network
