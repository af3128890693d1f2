"""MobileNetV1: thirteen separable convolutions (Howard et al. 2017, arXiv 1704.04861, table 1).

α = 1 at 224x224: 569 M multiply-accumulates, 4.2 M parameters (table 4). α = 0.25 at 96x96 with two
classes is the visual-wake-words network of MLPerf Tiny: 7,489,664 multiply-accumulates.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.models.layers import classifier, convolution, separable
from pipeline.models.network import Model

STAGES = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
"""(output channels at α = 1, stride) of each separable convolution."""


@dataclass(frozen=True)
class MobileNetV1(Model):
    """MobileNetV1; ``width`` is the paper's α.

    Attributes:
        bias: convolutions have one beside their normalization, as MLPerf Tiny's have.
    """

    input_shape: tuple[int, int, int] = (224, 224, 3)
    classes: int = 1000
    width: float = 1.0
    activation: str = "relu6"
    bias: bool = False

    def build(self) -> nn.Sequential:
        channels = max(1, int(32 * self.width))
        network = nn.Sequential()
        stem = convolution(
            self.input_shape[2], channels, stride=2, act=self.activation, bias=self.bias
        )
        network.add_module("stem", stem)
        for index, (base, stride) in enumerate(STAGES, 1):
            c_in, channels = channels, max(1, int(base * self.width))
            block = separable(c_in, channels, stride=stride, act=self.activation, bias=self.bias)
            network.add_module(f"block{index}", block)
        network.add_module("head", classifier(channels, self.classes))
        return network
