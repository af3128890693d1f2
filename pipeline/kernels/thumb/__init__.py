"""Kernels in Thumb assembly for cores without the DSP extension, whose one multiplication is of
32 bits: what is multiplied lies widened beside each other, and sums are in registers r8 to r11."""

from pipeline.hardware import Hardware
from pipeline.kernels.thumb.conv2d import Convolution
from pipeline.kernels.thumb.dense import DenseLayer
from pipeline.kernels.thumb.depthwise import Depthwise
from pipeline.kernels.thumb.ending import ThumbKernel

__all__ = ["KERNELS", "RATES", "Convolution", "DenseLayer", "Depthwise", "ThumbKernel", "has_thumb"]

KERNELS: tuple[ThumbKernel, ...] = (Convolution(), DenseLayer(), Depthwise())

RATES = {"cortex-m0plus": 1.6, "cortex-m3": 1.09}
"""Those of our boards' cores that are Armv6-M or Armv7-M, and how many cycles they take for one of
a Cortex-M4 in portable C: the mean of networks of MLPerf Tiny, simulated without flash waits (1.29
to 1.78 of four, 1.04 and 1.14 of two)."""


def has_thumb(hardware: Hardware) -> bool:
    """Check whether these are the core's kernels, and they are wanted."""
    wanted = hardware.kernels == "fast"
    return wanted and hardware.core == "cortex_m" and hardware.cpu in RATES
