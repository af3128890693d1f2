"""MobileNetV2: inverted residuals (Sandler et al. 2018, arXiv 1801.04381, table 2).

300 M multiply-accumulates and 3.4 M parameters at width 1 and 224x224 (table 4).

``early_downsampling`` is the modification of Pex (Liberis & Lane 2023, section 4.1, fig. 5 right):
the first inverted residual halves the image in its projection, instead of the one that follows. A
3x3 projection gives 294.4 M multiply-accumulates, where Pex's table 3 says 295 M (1x1 would give
281.5 M), its 11.2 % of patch overhead, 978 kB under ordinary and 226 kB under partial execution.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.models.layers import InvertedResidual, classifier, convolution, divisible
from pipeline.models.network import Model

STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""(expansion t, channels c, repetitions n, stride s of the first), as in the paper's table 2."""


@dataclass(frozen=True)
class MobileNetV2(Model):
    """MobileNetV2; whatever its ``width``, the last convolution has 1,280 channels or more.

    Attributes:
        early_downsampling: Pex's modification: the first block halves the image, not the second.
    """

    input_shape: tuple[int, int, int] = (224, 224, 3)
    classes: int = 1000
    width: float = 1.0
    early_downsampling: bool = False

    def build(self) -> nn.Sequential:
        channels = divisible(32 * self.width)
        network = nn.Sequential()
        network.add_module("stem", convolution(self.input_shape[2], channels, stride=2))
        blocks = nn.Sequential()
        for expand, base, repetitions, first in STAGES:
            for repetition in range(repetitions):
                c_in, channels = channels, divisible(base * self.width)
                stride, project = first if repetition == 0 else 1, (1, 1)
                if self.early_downsampling and len(blocks) < 2:
                    stride, project = 1, ((3, 2), (1, 1))[len(blocks)]
                blocks.append(InvertedResidual(c_in, channels, 3, stride, expand, project=project))
        network.add_module("blocks", blocks)
        last = divisible(1280 * max(1.0, self.width))
        network.add_module("last", convolution(channels, last, 1))
        network.add_module("head", classifier(last, self.classes))
        return network
