"""Dense layers on a map, which take its rows one by one as they are made."""

from __future__ import annotations

from pipeline.graph.operators.dense import Dense
from pipeline.kernels.cortex_m.by_row.layout import added_row
from pipeline.kernels.cortex_m.fast import Fast, words
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts

TOGETHER = 4
"""Outputs, which share what is widened of the row."""


class RowDense(Fast):
    """Adds what a row contributes to a sum of 32 bits for each output; the row may lie in any
    order, weights lie in the same."""

    word = "row_dense"
    takes = "dense layers that add a row of a map, in one piece, to exact sums"

    def can(self, form: Form) -> bool:
        return isinstance(form.op, Dense) and added_row(form) is not None

    def counts(self, form: Form) -> Counts:
        outputs, given = form.target.size, words(form.source.size // form.source.shape[0])
        return {
            "word of an output": given * outputs,
            "word of a group": given * -(-outputs // TOGETHER),
            "output": outputs,
        }
