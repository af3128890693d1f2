"""Dense layers: a list of the inputs that are not the zero point, each multiplied with the weights
of four channels. What is the zero point adds nothing to a sum, and is not read again."""

from __future__ import annotations

from typing import ClassVar

from pipeline.graph.operators.dense import Dense
from pipeline.kernels.form import Form
from pipeline.kernels.gap import Gap
from pipeline.kernels.thumb.base import SUMS, ThumbKernel, ends
from pipeline.kernels.work import Counts

UNROLL = 4
"""Inputs in the code of the innermost loop; the list is filled up with inputs that are 0."""


class DenseLayer(ThumbKernel):
    word = "dense"
    skips = True
    takes = (
        f"dense layers of {SUMS} or more outputs, all at once, of an input in one piece, whose "
        "sums end by products of 32 bits"
    )
    costs: ClassVar[Counts] = {
        "product": 4.95, "output": 42.0, "input": 13.9, "call": 96.0,
    }  # fmt: skip

    def can(self, form: Form) -> bool:
        name = form.op.inputs[0]
        return (
            isinstance(form.op, Dense)
            and not form.partial
            and form.target.size >= SUMS
            and form.covers(form.op.output)
            and form.in_one_piece(form.op.output)
            and form.covers(name)
            and form.in_one_piece(name)
            and ends(form)
        )

    def counts(self, form: Form) -> Counts:
        inputs, groups = form.source.size, -(-form.target.size // SUMS)
        outputs = groups * SUMS
        return {
            "product": inputs * outputs * (1 - form.zeros.get(form.op.inputs[0], 0.0)),
            "output": outputs,
            "input": inputs,
            "call": 1,
        }

    def table_passes(self, form: Form, cached_bytes: int = 0) -> float:
        """A product waits for its weight, of which others keep some in registers."""
        return 1.5 * (1 - form.zeros.get(form.op.inputs[0], 0.0))

    def unit(self, form: Form) -> tuple[int, ...]:
        """All: the list is made before anything is written."""
        return form.out.extents

    def overlap(self, form: Form, tensor: str) -> Gap | None:
        """Anywhere over its input."""
        return Gap(2 * form.source.size) if self.accepts(form) else None

    def scratch_bytes(self, form: Form) -> int:
        """Two words an input: what it is, and its number."""
        return -(-form.source.size // UNROLL) * UNROLL * 8
