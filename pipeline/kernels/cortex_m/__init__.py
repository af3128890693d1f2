"""Kernels for cores with the DSP extension multiply pairs of 16 bits: inputs are widened into a
buffer of the plan's own before they are multiplied, as often as they are used."""

from functools import cache

from pipeline.hardware import Hardware
from pipeline.kernels.by_row import best_pixels
from pipeline.kernels.cortex_m.accumulate import Accumulate
from pipeline.kernels.cortex_m.conv2d import Convolution
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.cortex_m.dense import DenseLayer, RowDense
from pipeline.kernels.cortex_m.depthwise import Depthwise, RowDepthwise
from pipeline.kernels.cortex_m.elements import Elements
from pipeline.kernels.cortex_m.gathered import GatheredConvolution, GatheredDepthwise
from pipeline.kernels.cortex_m.ordered import Ordered
from pipeline.kernels.cortex_m.pool import Pool, RowPool
from pipeline.kernels.cortex_m.row_convolution import RowConvolution, RowFused
from pipeline.kernels.cortex_m.single import Single, Strips
from pipeline.kernels.cortex_m.winograd import SPANS, Winograd

RATES = {"cortex-m4": 1.0, "cortex-m7": 0.71, "cortex-m33": 0.9}
"""Those of our boards' cores that have SMLAD and its kin (Armv7E-M, Armv8-M with DSP), and how many
cycles they take for one of the first in portable C: the mean of simulated networks, and of ten
layers."""

WEAVES = ("cortex-m7",)
"""Those that issue two instructions at once, if these suit each other: their assembly has loads
between multiplications. On others a load after a load is cheaper."""

__all__ = ["RATES", "WEAVES", "Ordered", "best_pixels", "has_dsp", "kernels"]

KERNELS = (
    *(Accumulate, Convolution, DenseLayer, Depthwise, Elements, Pool, Single, Strips),
    *(RowConvolution, RowDense, RowDepthwise, RowFused, RowPool),
    *(GatheredConvolution, GatheredDepthwise),
)


def has_dsp(hardware: Hardware) -> bool:
    """Check whether the core has kernels of its own, and they are wanted."""
    wanted = hardware.kernels == "fast"
    return wanted and hardware.core == "cortex_m" and hardware.cpu in RATES


@cache
def kernels(cpu: str) -> tuple[Fitted, ...]:
    """Return those that the core has, but ``Ordered``."""
    winograd = (Winograd(cpu, span) for span in (0, *SPANS))
    return *(kernel(cpu) for kernel in KERNELS), *winograd
