"""ResNet8: the image classification network of MLPerf Tiny, for CIFAR-10 (Banbury et al. 2021,
"MLPerf Tiny Benchmark", arXiv 2106.07597). 12,501,632 multiply-accumulates; 78,666 values with the
moving statistics. Shortcuts between stages are 1x1 convolutions without normalization, as there.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.models.layers import classifier, convolution
from pipeline.models.network import Model
from pipeline.models.resnet18 import BasicBlock


@dataclass(frozen=True)
class ResNet8(Model):
    """One residual block for each stage; all but the first halve the image.

    Attributes:
        channels: of each stage.
    """

    input_shape: tuple[int, int, int] = (32, 32, 3)
    classes: int = 10
    channels: tuple[int, ...] = (16, 32, 64)

    def build(self) -> nn.Sequential:
        c_in = self.channels[0]
        network = nn.Sequential()
        network.add_module("stem", convolution(self.input_shape[2], c_in, act="relu", bias=True))
        for index, c_out in enumerate(self.channels):
            block = BasicBlock(c_in, c_out, 1 if index == 0 else 2, plain=True)
            network.add_module(f"stage{index + 1}", block)
            c_in = c_out
        network.add_module("head", classifier(c_in, self.classes))
        return network
