"""EfficientNet-B0: inverted residuals with squeeze-excitation (Tan & Le 2019, arXiv 1905.11946,
table 1). 5.3 M parameters and 0.39 G multiply-accumulates at 224x224 with its classifier (table 2).

Pex runs it at 160x160 and counts 187 M multiply-accumulates and 3,987 kB: that is the network whose
classifier reads the 320 channels of the last block, without the 1,280-channel convolution.
The original's activation is SiLU; Pex doesn't say what it uses, and memory does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.models.layers import InvertedResidual, classifier, convolution
from pipeline.models.network import Model

STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
"""(expansion, kernel, stride of the first, channels, repetitions)."""

STEM, LAST, SQUEEZE = 32, 1280, 4
"""Channels of the first and the last convolution; each block squeezes to c_in / SQUEEZE."""


@dataclass(frozen=True)
class EfficientNet(Model):
    """EfficientNet-B0.

    Attributes:
        headless: without the last convolution.
    """

    input_shape: tuple[int, int, int] = (160, 160, 3)
    classes: int = 1000
    activation: str = "silu"
    headless: bool = False

    def build(self) -> nn.Sequential:
        channels = STEM
        network, blocks = nn.Sequential(), nn.Sequential()
        network.add_module(
            "stem", convolution(self.input_shape[2], channels, stride=2, act=self.activation)
        )
        for expand, kernel, first, stage, repetitions in STAGES:
            for repetition in range(repetitions):
                c_in, channels = channels, stage
                stride = first if repetition == 0 else 1
                squeezed = max(1, c_in // SQUEEZE)
                blocks.append(
                    InvertedResidual(
                        c_in, channels, kernel, stride, expand, self.activation, squeezed
                    )
                )
        network.add_module("blocks", blocks)
        if not self.headless:
            network.add_module("last", convolution(channels, LAST, 1, act=self.activation))
            channels = LAST
        network.add_module("head", classifier(channels, self.classes))
        return network
