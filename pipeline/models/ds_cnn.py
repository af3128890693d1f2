"""Keyword spotting with separable convolutions: DS-CNN and the MicroNets searched from it.

DS-CNN S, M, L: Zhang et al. 2017, "Hello Edge" (arXiv 1711.07128); S is also the keyword
network of MLPerf Tiny, 2,656,768 multiply-accumulates. MicroNets-KWS S, M, L: Banbury et al. 2021
(arXiv 2010.11267); their channels are those at which multiply-accumulates, size and peak memory all
equal the figures in appendix D of Pex (Liberis & Lane 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.layers import Pair, classifier, same_padding, separable
from pipeline.models.network import Model


@dataclass(frozen=True)
class DsCnn(Model):
    """A spectrogram (frames, coefficients, 1), a ``kernel`` = (h, w) convolution of ``stride``
    (h, w) and ``channels[0]`` channels, then a separable 3x3 convolution for each further number of
    channels; the first of them has ``second_stride``. All convolutions have biases, as published.

    Attributes:
        channels: of the first convolution, then of each separable one.
        kernel, stride: height and width, of the first convolution.
        second_stride: of the first separable convolution.
    """

    input_shape: tuple[int, int, int] = (49, 10, 1)
    classes: int = 12
    channels: tuple[int, ...] = (64, 64, 64, 64, 64)
    kernel: tuple[int, int] = (10, 4)
    stride: tuple[int, int] = (2, 2)
    second_stride: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.channels or min(self.channels) < 1:
            raise ThimbleError(f"model.channels={list(self.channels)}: at least one layer of one")

    def build(self) -> nn.Sequential:
        network = nn.Sequential()
        network.add_module("pad", nn.ZeroPad2d(self.padding))
        first = nn.Conv2d(self.input_shape[2], self.channels[0], self.kernel, self.stride)
        network.add_module("first", first)
        network.add_module("norm", nn.BatchNorm2d(self.channels[0]))
        network.add_module("relu", nn.ReLU())
        stride = self.second_stride
        for index, c_out in enumerate(self.channels[1:]):
            block = separable(self.channels[index], c_out, 3, stride, "relu", bias=True)
            network.add_module(f"block{index + 1}", block)
            stride = 1
        network.add_module("head", classifier(self.channels[-1], self.classes))
        return network

    @property
    def padding(self) -> tuple[int, int, int, int]:
        """(left, right, top, bottom) of the first convolution: TensorFlow's "same"."""
        size: Pair = self.input_shape[:2]
        top, bottom = same_padding(size[0], self.kernel[0], self.stride[0])
        left, right = same_padding(size[1], self.kernel[1], self.stride[1])
        return left, right, top, bottom
