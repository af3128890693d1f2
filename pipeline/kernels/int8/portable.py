"""Portable C: any form of any operator, in elements of whole bytes."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.kernels.form import Form
from pipeline.kernels.gap import pixel_gap
from pipeline.kernels.int8 import limits
from pipeline.kernels.int8.costs import COSTS, PRODUCT_CYCLES, counted
from pipeline.kernels.kernel import Kernel
from pipeline.kernels.work import priced


@dataclass(frozen=True)
class Portable(Kernel):
    """Of one kind of operator.

    Attributes:
        word: the kind.
        product_cycles: of a multiply–accumulate in a convolution.
    """

    word: str
    product_cycles: float

    @property
    def name(self) -> str:
        return f"int8.{self.word}"

    def why_not(self, form: Form) -> str:
        return limits.why_not(form)

    def overlap(self, form: Form, tensor: str) -> int | None:
        """Windows over pixels keep what they make of one until its inputs are read."""
        if form.op.slides and len(form.target.shape) == len(form.source.shape) == 3:
            return pixel_gap(form, tensor)
        return super().overlap(form, tensor)

    def cycles(self, form: Form) -> float:
        family, counts = counted(form)
        return self.product_cycles / PRODUCT_CYCLES * priced(counts, COSTS[family])
