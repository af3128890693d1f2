"""Dense layers on an AVR: a convolution of one pixel."""

from __future__ import annotations

from typing import ClassVar

from pipeline.graph.operators.dense import Dense
from pipeline.kernels.avr.convolution import MOST_ELEMENTS, SUM_BYTES
from pipeline.kernels.avr.rows import AvrKernel, ends_in_24_bits
from pipeline.kernels.form import Form
from pipeline.kernels.gap import Gap
from pipeline.kernels.work import Counts


class DenseLayer(AvrKernel):
    word = "dense"
    takes = (
        f"dense layers of up to {MOST_ELEMENTS} inputs, all at once, of an input in one piece, and "
        "whose sums fit 24 bits"
    )
    costs: ClassVar[Counts] = {"product": 11.2, "output": 150.0, "input": 20.0, "call": 400.0}

    def can(self, form: Form) -> bool:
        name = form.op.inputs[0]
        return (
            isinstance(form.op, Dense)
            and not form.partial
            and form.covers(form.op.output)
            and form.in_one_piece(form.op.output)
            and form.covers(name)
            and form.in_one_piece(name)
            and form.source.size <= MOST_ELEMENTS
            and ends_in_24_bits(form)
        )

    def counts(self, form: Form) -> Counts:
        inputs, outputs = form.source.size, form.target.size
        return {"product": inputs * outputs, "output": outputs, "input": inputs, "call": 1}

    def unit(self, form: Form) -> tuple[int, ...]:
        """All: the input is copied before anything is written."""
        return form.out.extents

    def overlap(self, form: Form, tensor: str) -> Gap | None:
        """Anywhere over its input."""
        return Gap(2 * form.source.size) if self.accepts(form) else None

    def scratch_bytes(self, form: Form) -> int:
        return form.source.size + SUM_BYTES
