"""Average and maximum pooling, four channels at a time: a word of each pixel."""

from __future__ import annotations

from math import prod

from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import FixedPoint
from pipeline.kernels.cortex_m.fast import Fast, in_passes
from pipeline.kernels.form import Form

MOST_TAPS = 256
"""Bytes whose sum 16 bits hold."""

LEAST_CHANNELS = 4


class Pool(Fast):
    word = "pool"
    takes = f"pooling of {LEAST_CHANNELS} or more channels, windows of up to {MOST_TAPS} pixels"

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Pool2d)
            and in_passes(form)
            and form.even(op.output, 2)
            and form.out.extents[2] >= LEAST_CHANNELS
            and form.evenly_spaced(op.inputs[0])
            and prod(op.kernel) <= MOST_TAPS
            and _one_scale(op)
        )


def _one_scale(op: Pool2d) -> bool:
    """All channels are requantized in the same way."""
    if not isinstance(op, AveragePool2d) or not isinstance(op.requant, FixedPoint):
        return True
    return len(set(op.requant.multipliers)) == len(set(op.requant.shifts)) == 1
