"""Kernels for cores with the DSP extension multiply pairs of 16 bits: inputs are widened into a
buffer of the plan's own before they are multiplied, as often as they are used."""

from __future__ import annotations

from pipeline.hardware import Hardware
from pipeline.kernels.cortex_m.accumulate import Accumulate
from pipeline.kernels.cortex_m.add import Sum
from pipeline.kernels.cortex_m.conv2d import Convolution
from pipeline.kernels.cortex_m.dense import DenseLayer
from pipeline.kernels.cortex_m.depthwise import Depthwise
from pipeline.kernels.cortex_m.pool import Pool
from pipeline.kernels.cortex_m.single import Rows, Single, Strips
from pipeline.kernels.kernel import Kernel

DSP_CPUS = frozenset({"cortex-m4", "cortex-m7", "cortex-m33"})
"""Those of our boards that have SMLAD and its kin (Armv7E-M, Armv8-M with DSP)."""

PORTABLE_CYCLES = 8.0
"""Of a product in portable C on these cores."""

KERNELS: tuple[Kernel, ...] = (
    Accumulate(),
    Convolution(),
    DenseLayer(),
    Depthwise(),
    Pool(),
    Rows(),
    Single(),
    Strips(),
    Sum(),
)


def has_dsp(hardware: Hardware) -> bool:
    return hardware.core == "cortex_m" and hardware.cpu in DSP_CPUS
