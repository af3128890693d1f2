"""The C that planners can count on: which kernel computes which form of an operator, and what it
needs for that. The C itself is ``codegen``'s."""

from pipeline.kernels.choose import (
    block_pixels,
    choose,
    named,
    offers,
    quicker,
    scratch_bytes,
    takes_place,
)
from pipeline.kernels.form import Form, Part
from pipeline.kernels.kernel import Kernel, natural_unit
from pipeline.kernels.lacks import lacks
from pipeline.kernels.modelled import (
    cycles_by_operator,
    formed,
    modelled,
    modelled_cycles,
    skips,
    zero_shares,
)
from pipeline.kernels.waits import cycles_of_step

__all__ = [
    "Form", "Kernel", "Part", "block_pixels", "choose", "cycles_by_operator", "cycles_of_step",
    "formed", "lacks", "modelled", "modelled_cycles", "named", "natural_unit", "offers", "quicker",
    "scratch_bytes", "skips", "takes_place", "zero_shares",
]  # fmt: skip
