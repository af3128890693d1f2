"""Chains for the smallest memories: valid convolutions with ReLU, 2x2 maximums, a dense layer."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import ByteConv2d, Model, PixelPool

Convolution = tuple[int, int, int]
"""(channels, side of the square kernel, stride); 0 channels: depthwise, as many as there are"""


@dataclass(frozen=True)
class SmallCnn(Model):
    """
    Attributes:
        convolutions: in order, each with ReLU and no padding.
        pooled: the numbers, from 1, of those that a 2x2 maximum follows.
        input_pool: pixels of the image that become one of 4 bits, along each side.
        bits: of each convolution's weights and outputs in the 4-bit format, 4 or 8; none: 4.
    """

    convolutions: tuple[Convolution, ...] = ((5, 5, 2), (8, 3, 1), (8, 3, 1), (16, 3, 1))
    pooled: tuple[int, ...] = (3,)
    input_pool: int = 1
    bits: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        written = [list(each) for each in self.convolutions]
        if not written or any(
            len(each) != 3 or min(*each[1:], 1 + each[0]) < 1 for each in written
        ):
            raise ThimbleError(
                f"model.convolutions={written}: one at least is needed, each as "
                "[channels,kernel,stride]"
            )
        if self.bits and (len(self.bits) != len(written) or set(self.bits) - {4, 8}):
            raise ThimbleError(
                f"model.bits={list(self.bits)}: 4 or 8 for each of the {len(written)} convolutions"
            )
        if not set(self.pooled) <= set(range(1, len(written) + 1)):
            raise ThimbleError(
                f"model.pooled={list(self.pooled)}: numbers of the {len(written)} convolutions"
            )

    def build(self) -> nn.Sequential:
        height, width, depth = self.input_shape
        network = nn.Sequential()
        network.add_module("avg", PixelPool(self.input_pool))
        sides = [height // self.input_pool, width // self.input_pool]
        for number, (channels, kernel, stride) in enumerate(self.convolutions, 1):
            kind = ByteConv2d if 8 in self.bits[number - 1 : number] else nn.Conv2d
            groups, channels = (1, channels) if channels else (depth, depth)
            convolution = kind(depth, channels, kernel, stride, groups=groups)
            nn.init.orthogonal_(convolution.weight)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            network.add_module(f"conv{number}", convolution)
            network.add_module(f"relu{number}", nn.ReLU())
            sides, depth = [(side - kernel) // stride + 1 for side in sides], channels
            if number in self.pooled:
                network.add_module(f"maxpool{number}", nn.MaxPool2d(2))
                sides = [side // 2 for side in sides]
            if min(sides) < 1:
                raise ThimbleError(
                    f"model: of {height}x{width} images nothing is left after conv{number}: "
                    "use fewer or smaller convolutions, or fewer in model.pooled"
                )
        network.add_module("flatten", nn.Flatten())
        network.add_module("dense", nn.Linear(sides[0] * sides[1] * depth, self.classes))
        return network
