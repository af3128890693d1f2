"""The 2 KB network of Gural & Murmann, "Memory-Optimal Direct Convolutions…" (2019), Section 5.

28x28x1 -> 2x2 average to 4 bits -> three valid 3x3 convolutions of 5, 8 and 11 channels with ReLU
-> 2x2 maximum -> dense 10. 2,957 weights, 34 biases, 94,928 multiply-accumulates.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import Model
from pipeline.models.small_cnn import SmallCnn


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
        last, layers = len(self.channels), [(each, self.kernel, 1) for each in self.channels]
        built = SmallCnn(
            self.input_shape, self.classes, convolutions=tuple(layers), pooled=(last,),
            input_pool=self.input_pool,
        ).build()  # fmt: skip
        renamed = {f"maxpool{last}": "maxpool"}
        return nn.Sequential(OrderedDict((renamed.get(n, n), m) for n, m in built.named_children()))
