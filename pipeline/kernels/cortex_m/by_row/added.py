"""Averages over all of an image, which take its rows one by one as they are made."""

from __future__ import annotations

from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout, added_row
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts


class RowAdded(Fast):
    """Adds a row to a sum of 32 bits for each channel."""

    word = "row_added"
    takes = "averages of a whole image in blocks, without padding, that add one row to exact sums"

    def can(self, form: Form) -> bool:
        op = form.op
        if not isinstance(op, AveragePool2d) or (source := added_row(form)) is None:
            return False
        return source.blocked and not any(op.padding) and op.kernel == form.source.shape[:2]

    def counts(self, form: Form) -> Counts:
        source = RowLayout.of(form, form.op.inputs[0])
        assert source is not None
        words, left = divmod(source.columns, BLOCK)
        return {
            "word": words * source.channels,
            "byte": left * source.channels,
            "channel with a shorter block": source.channels * (left > 0),
            "channel": source.channels,
        }
