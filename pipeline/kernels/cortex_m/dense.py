"""Dense layers of whole tensors: the input is widened once, for all output channels."""

from __future__ import annotations

from pipeline.graph.operators.dense import Dense
from pipeline.kernels.cortex_m.fast import Fast, words
from pipeline.kernels.form import Form


class DenseLayer(Fast):
    word = "dense"
    takes = "dense layers of two or more outputs, all at once, of an input in one piece"

    def can(self, form: Form) -> bool:
        return (
            isinstance(form.op, Dense)
            and not form.partial
            and not form.overlaps
            and form.target.size > 1
            and form.covers(form.op.output)
            and form.in_one_piece(form.op.output)
            and form.in_one_piece(form.op.inputs[0])
        )

    def scratch_bytes(self, form: Form) -> int:
        """The input, 16 bits an element."""
        return words(form.source.size) * 8
