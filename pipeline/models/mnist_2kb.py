"""The 2 KB network of Gural & Murmann, "Memory-Optimal Direct Convolutions…" (2019), Section 5.

28x28x1 -> 2x2 average to 4 bits -> three valid 3x3 convolutions of 5, 8 and 11 channels with ReLU
-> 2x2 maximum -> dense 10. 2,957 weights, 34 biases, 94,928 multiply-accumulates.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import Model, PixelPool


@dataclass(frozen=True)
class Mnist2kb(Model):
    """The network for 2 KB of Gural & Murmann (2019): convolutions, a maximum, a dense layer.

    Attributes:
        channels: of each convolution.
        kernel: rows and columns of each convolution.
        input_pool: pixels of the image that become one of 4 bits, along each side.
    """

    channels: tuple[int, ...] = (5, 8, 11)
    kernel: int = 3
    input_pool: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.channels or min(self.channels) < 1 or self.kernel < 1:
            raise ThimbleError(
                f"model.channels={list(self.channels)}, model.kernel={self.kernel}: at least one "
                "convolution of at least one channel and pixel is needed"
            )

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        network = nn.Sequential()
        network.add_module("avg", PixelPool(self.input_pool))
        rows, columns = height // self.input_pool, width // self.input_pool
        for index, channels in enumerate(self.channels, 1):
            convolution = nn.Conv2d(depth, channels, self.kernel)
            nn.init.orthogonal_(convolution.weight)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            network.add_module(f"conv{index}", convolution)
            network.add_module(f"relu{index}", nn.ReLU())
            rows, columns, depth = rows - self.kernel + 1, columns - self.kernel + 1, channels
        if min(rows, columns) < 2:
            raise ThimbleError(
                f"model: {height}x{width} images leave {rows}x{columns} pixels after "
                f"{len(self.channels)} convolutions, at least 2x2 are needed: use fewer or smaller"
            )
        network.add_module("maxpool", nn.MaxPool2d(2))
        network.add_module("flatten", nn.Flatten())
        network.add_module("dense", nn.Linear(rows // 2 * (columns // 2) * depth, self.classes))
        return network
