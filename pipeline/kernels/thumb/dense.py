"""Dense layers: a list of the inputs that are not the zero point, each multiplied with the weights
of four channels. What is the zero point adds nothing to a sum, and is not read again."""

from typing import ClassVar

from pipeline.kernels.fast import FastDense
from pipeline.kernels.form import Form
from pipeline.kernels.thumb.ending import SUMS, ThumbKernel, ends
from pipeline.kernels.work import Counts

UNROLL = 4
"""Inputs in the code of the innermost loop; the list is filled up with inputs that are 0."""


class DenseLayer(FastDense, ThumbKernel):
    skips = True
    takes = (
        f"dense layers of {SUMS} or more outputs, all at once, of an input in one piece, whose "
        "sums end by products of 32 bits"
    )
    costs: ClassVar[Counts] = {
        "product": 4.95, "output": 42.0, "input": 13.9, "call": 96.0,
    }  # fmt: skip

    def can(self, form: Form) -> bool:
        return super().can(form) and form.target.size >= SUMS and ends(form)

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
        """A product waits for its weight, of which others keep some in registers; a cache reads
        whole lines, with weights that nothing is multiplied with."""
        return 1.0 if cached_bytes else 1.5 * (1 - form.zeros.get(form.op.inputs[0], 0.0))

    def scratch_bytes(self, form: Form) -> int:
        """Count two words an input: what it is, and its number."""
        return -(-form.source.size // UNROLL) * UNROLL * 8
