"""Kernels for cores with the DSP extension multiply pairs of 16 bits: inputs are widened into a
buffer of the plan's own before they are multiplied, as often as they are used."""

from __future__ import annotations

from pipeline.hardware import Hardware
from pipeline.kernels.cortex_m.fast import Accumulate, Convolution, Dense, Depthwise, Single
from pipeline.kernels.kernel import Kernel

DSP_CPUS = frozenset({"cortex-m4", "cortex-m7", "cortex-m33"})
"""Those of our boards that have SMLAD and its kin (Armv7E-M, Armv8-M with DSP)."""

KERNELS: tuple[Kernel, ...] = (Accumulate(), Convolution(), Dense(), Depthwise(), Single())


def has_dsp(hardware: Hardware) -> bool:
    return hardware.core == "cortex_m" and hardware.cpu in DSP_CPUS
