"""Average and maximum pooling, four channels at a time: a word of each pixel."""

from __future__ import annotations

from math import prod

from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import FixedPoint
from pipeline.kernels.cortex_m.fast import Fast, in_rows
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, positions

MOST_TAPS = 256
"""Bytes whose sum 16 bits hold."""

LEAST_CHANNELS = 4


class Pool(Fast):
    word = "pool"
    takes = f"pooling of {LEAST_CHANNELS} or more channels, windows of up to {MOST_TAPS} pixels"

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            in_words(form)
            and in_rows(form)
            and not form.overlaps
            and form.even(op.output, 2)
            and form.in_rows(op.inputs[0])
        )

    def counts(self, form: Form) -> Counts:
        """Words are of four channels."""
        rows, columns, channels = form.out.extents
        pixels, taps = rows * columns, prod(positions(form))
        kind = "average" if form.op.combine == "add" else "maximum"
        padded = any(getattr(form.op, "padding"))  # noqa: B009
        return {
            f"word of a tap, {kind}": pixels * taps * -(-channels // 4),
            "output of averages": pixels * channels * (kind == "average"),
            "row of taps": pixels * positions(form)[0] * -(-channels // 4),
            "pixel of an image with padding": pixels * padded,
            "average of an image with padding": pixels * channels * padded * (kind == "average"),
        }


def in_words(form: Form) -> bool:
    """Check whether four channels of a window are reduced at once, in words of them."""
    op = form.op
    return (
        isinstance(op, Pool2d)
        and form.out.extents[2] >= LEAST_CHANNELS
        and prod(op.kernel) <= MOST_TAPS
        and one_scale(op)
    )


def one_scale(op: Pool2d) -> bool:
    """All channels are requantized in the same way."""
    if not isinstance(op, AveragePool2d) or not isinstance(op.requant, FixedPoint):
        return True
    return len(set(op.requant.multipliers)) == len(set(op.requant.shifts)) == 1
