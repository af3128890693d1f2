"""Dense layers on an AVR: a convolution of one pixel."""

from __future__ import annotations

from typing import ClassVar

from pipeline.kernels.avr.convolution import MOST_ELEMENTS, SUM_BYTES
from pipeline.kernels.avr.rows import AvrKernel, ends_in_24_bits
from pipeline.kernels.cortex_m.fast import FastDense
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts


class DenseLayer(FastDense, AvrKernel):
    takes = (
        f"dense layers of up to {MOST_ELEMENTS} inputs, all at once, of an input in one piece, and "
        "whose sums fit 24 bits"
    )
    costs: ClassVar[Counts] = {"product": 11.2, "output": 150.0, "input": 20.0, "call": 400.0}

    def can(self, form: Form) -> bool:
        small = super().can(form) and form.source.size <= MOST_ELEMENTS
        return small and ends_in_24_bits(form)

    def counts(self, form: Form) -> Counts:
        inputs, outputs = form.source.size, form.target.size
        return {"product": inputs * outputs, "output": outputs, "input": inputs, "call": 1}

    def scratch_bytes(self, form: Form) -> int:
        return form.source.size + SUM_BYTES
