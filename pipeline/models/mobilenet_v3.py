"""MobileNetV3-Small (Howard et al. 2019, arXiv 1905.02244, table 2).

56 M multiply-accumulates and 2.5 M parameters at 224x224 (table 3). Nine of its eleven blocks
squeeze and excite, at a quarter of their expanded channels; Pex (appendix B, fig. 6) shows its
first layers as what stops both partial and patch-based execution.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.models.layers import InvertedResidual, classifier, convolution, divisible
from pipeline.models.network import Model

BLOCKS = (
    (3, 16, 16, True, "relu", 2),
    (3, 72, 24, False, "relu", 2),
    (3, 88, 24, False, "relu", 1),
    (5, 96, 40, True, "hardswish", 2),
    (5, 240, 40, True, "hardswish", 1),
    (5, 240, 40, True, "hardswish", 1),
    (5, 120, 48, True, "hardswish", 1),
    (5, 144, 48, True, "hardswish", 1),
    (5, 288, 96, True, "hardswish", 2),
    (5, 576, 96, True, "hardswish", 1),
    (5, 576, 96, True, "hardswish", 1),
)
"""(kernel, expanded channels, channels, whether it squeezes and excites, activation, stride)."""

STEM, LAST, HIDDEN, SQUEEZE = 16, 576, 1024, 4
"""Channels of the first and the last convolution, of the classifier's hidden layer; each block
squeezes to its expanded channels / SQUEEZE, as ``divisible`` rounds it."""


@dataclass(frozen=True)
class MobileNetV3Small(Model):
    input_shape: tuple[int, int, int] = (224, 224, 3)
    classes: int = 1000

    def build(self) -> nn.Sequential:
        channels = STEM
        network, blocks = nn.Sequential(), nn.Sequential()
        stem = convolution(self.input_shape[2], channels, stride=2, act="hardswish")
        network.add_module("stem", stem)
        for kernel, hidden, c_out, squeezes, act, stride in BLOCKS:
            squeezed = divisible(hidden / SQUEEZE) if squeezes else 0
            expand = hidden / channels
            blocks.append(
                InvertedResidual(channels, c_out, kernel, stride, expand, act, squeezed, hard=True)
            )
            channels = c_out
        network.add_module("blocks", blocks)
        network.add_module("last", convolution(channels, LAST, 1, act="hardswish"))
        network.add_module("hidden", classifier(LAST, HIDDEN))
        network.add_module("act", nn.Hardswish())
        network.add_module("head", nn.Linear(HIDDEN, self.classes))
        return network
