"""Pooling with windows, of a row in blocks, channel by channel: first down all columns, four at a
time, then along them."""

from __future__ import annotations

from pipeline.graph.operators.pool2d import Pool2d
from pipeline.kernels.cortex_m.by_row.base import RowKernel
from pipeline.kernels.cortex_m.by_row.layout import BLOCK
from pipeline.kernels.cortex_m.pool import one_scale
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, positions

MOST_ROWS = 128
"""Bytes whose sum 16 bits hold."""


class RowPool(RowKernel):
    """All that a channel's row is made of is read before it is written."""

    word = "row_pool"
    takes = f"pooling with windows of up to {MOST_ROWS} rows that makes one row from rows in blocks"

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Pool2d) or found is None:
            return False
        source, target = found
        return (
            source.blocked
            and (target.blocked or target.pixels == 1)
            and op.kernel[0] <= MOST_ROWS
            and one_scale(op)
        )

    def scratch_bytes(self, form: Form) -> int:
        return -(-form.source.shape[1] // BLOCK) * BLOCK * 2

    def counts(self, form: Form) -> Counts:
        source, target = self.known(form)
        words, left = divmod(source.columns, BLOCK)
        each = source.channels * form.given.extents[0]
        return {
            "word": each * words,
            "byte": each * left,
            "tap": target.bytes * positions(form)[1],
            "output of averages": target.bytes * (form.op.combine == "add"),
            "output of an image with padding": target.bytes * any(getattr(form.op, "padding")[2:]),  # noqa: B009
        }
