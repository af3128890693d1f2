"""Keyword spotting along time alone: the bins of a spectrogram become channels at once, and all
that follows are separable convolutions along time.

After MatchboxNet (Majumdar & Ginsburg 2020, arXiv 2004.08531), whose blocks these are without
sub-blocks and at a hundredth of its products: of a window of a second, rows of one pixel.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from pipeline.errors import ThimbleError
from pipeline.models.layers import classifier
from pipeline.models.network import Model


@dataclass(frozen=True)
class TimeChannel(Model):
    """A spectrogram (frames, bins, 1) to ``classes``.

    Attributes:
        channels: of every convolution.
        strides: along time, of each block; what one with stride 1 makes is added to its input.
        kernel: frames under a depthwise convolution; odd.
        padding: around each convolution; a stream of windows without it computes only what is new.
    """

    input_shape: tuple[int, int, int] = (80, 20, 1)
    classes: int = 12
    channels: int = 24
    strides: tuple[int, ...] = (2, 1, 1, 1)
    kernel: int = 7
    padding: bool = True

    def build(self) -> nn.Sequential:
        if self.kernel % 2 == 0:
            raise ThimbleError(f"model.kernel={self.kernel} has to be odd")
        _, bins, depth = self.input_shape
        network = nn.Sequential()
        network.add_module("bins", normalized(nn.Conv2d(depth, self.channels, (1, bins))))
        network.add_module("relu", nn.ReLU())
        for number, stride in enumerate(self.strides, 1):
            network.add_module(
                f"block{number}", Block(self.channels, self.kernel, stride, self.padding)
            )
        network.add_module("head", classifier(self.channels, self.classes))
        return network


class Block(nn.Module):
    """Depthwise along time, pointwise, the input, or the middle of it, added where ``stride`` is 1:
    (n, c, t, 1) -> (n, c, ceil(t / stride), 1), kernel - 1 frames fewer where nothing is padded."""

    def __init__(self, channels: int, kernel: int, stride: int, pads: bool = True) -> None:
        super().__init__()
        self.cut = 0 if pads else kernel // 2
        sides, padding = (kernel, 1), (kernel // 2 - self.cut, 0)
        self.depthwise = normalized(
            nn.Conv2d(channels, channels, sides, (stride, 1), padding, groups=channels)
        )
        self.pointwise = normalized(nn.Conv2d(channels, channels, 1))
        self.act = nn.ReLU()
        self.adds = stride == 1

    def middle(self, x: Tensor) -> Tensor:
        return x[:, :, self.cut : -self.cut] if self.cut else x

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.pointwise(self.act(self.depthwise(x)))
        z: Tensor = self.act(self.middle(x) + y if self.adds else y)
        return z


def normalized(convolution: nn.Conv2d) -> nn.Sequential:
    """A channel that is always 0 has no variance: TensorFlow's epsilon keeps its scale within what
    a requantization takes."""
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels, eps=1e-3))
