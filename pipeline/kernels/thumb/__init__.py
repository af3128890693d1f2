"""Kernels in Thumb-1 assembly for cores without the DSP extension, whose one multiplication is of
32 bits: what is multiplied lies widened beside each other, and sums are in registers r8 to r11."""

from __future__ import annotations

from pipeline.hardware import Hardware
from pipeline.kernels.thumb.conv2d import Convolution
from pipeline.kernels.thumb.dense import DenseLayer
from pipeline.kernels.thumb.depthwise import Depthwise
from pipeline.kernels.thumb.ending import ThumbKernel

__all__ = ["KERNELS", "RATE", "Convolution", "DenseLayer", "Depthwise", "ThumbKernel", "has_thumb"]

KERNELS: tuple[ThumbKernel, ...] = (Convolution(), DenseLayer(), Depthwise())

CPUS = ("cortex-m0plus",)
"""Those of our boards' cores that are Armv6-M."""

RATE = 1.6
"""Cycles that they take for one of a Cortex-M4 in portable C: the mean of MLPerf Tiny's four
networks, simulated without flash waits (1.29 to 1.78)."""


def has_thumb(hardware: Hardware) -> bool:
    """Check whether these are the core's kernels, and they are wanted."""
    wanted = hardware.kernels == "fast"
    return wanted and hardware.core == "cortex_m" and hardware.cpu in CPUS
