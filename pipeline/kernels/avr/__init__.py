"""Assembly for layers of 8 bits on an AVR: pixels share each weight that is read from flash."""

from pipeline.hardware import Hardware
from pipeline.kernels.avr.convolution import Convolution, DenseLayer
from pipeline.kernels.avr.depthwise import Depthwise
from pipeline.kernels.avr.rows import AvrKernel
from pipeline.kernels.fast import Fast

__all__ = ["KERNELS", "AvrKernel", "Convolution", "DenseLayer", "Depthwise", "has_assembly"]

KERNELS: tuple[Fast, ...] = (Convolution(), DenseLayer(), Depthwise())


def has_assembly(hardware: Hardware) -> bool:
    """Check whether the core has kernels of its own for bytes, and they are wanted. They read
    weights by LPM."""
    return (
        hardware.core == "avr" and hardware.kernels == "fast" and hardware.weight_memory == "flash"
    )
