"""Pooling, four channels at a time: a word of each pixel."""

from __future__ import annotations

from math import prod

from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import FixedPoint
from pipeline.kernels.cortex_m.gathered import Gathered, in_any_order
from pipeline.kernels.fast import in_rows, words
from pipeline.kernels.form import Form
from pipeline.kernels.safe_offset import SafeOffset
from pipeline.kernels.work import Counts, positions

MOST_TAPS = 256
"""Bytes whose sum 16 bits hold."""

LEAST_CHANNELS = 4


class Pool(Gathered):
    """Rows from rows; or pixels over the input or anywhere: a pixel's outputs lie beside until all
    of them are there."""

    word = "pool"
    takes = (
        f"pooling of {LEAST_CHANNELS} or more channels, windows of up to {MOST_TAPS} pixels, in "
        "rows, or all channels of pixels that lie anywhere"
    )

    def can(self, form: Form) -> bool:
        op = form.op
        if not isinstance(op, Pool2d) or prod(op.kernel) > MOST_TAPS or not one_scale(op):
            return False
        in_order = in_rows(form) and not form.overlaps and form.even(op.output, 2)
        able = in_any_order(form) or (in_order and form.in_rows(op.inputs[0]))
        return able and form.out.extents[2] >= LEAST_CHANNELS

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        return super().overlap(form, tensor) if in_any_order(form) else None

    def counts(self, form: Form) -> Counts:
        """Words are of four channels."""
        gathered, channels = in_any_order(form), form.out.extents[2]
        pixels, taps = self.pixels(form), prod(positions(form))
        kind = "average" if form.op.combine == "add" else "maximum"
        averages, way = pixels * channels * (kind == "average"), "gathered, " * gathered
        found = {
            f"{way}word of a tap, {kind}": pixels * taps * words(channels),
            f"{way}output of averages": averages,
        }
        if gathered:
            return {**found, "word of a pixel": pixels * words(channels), "pixel": pixels}
        padded = any(getattr(form.op, "padding"))  # noqa: B009
        return {
            **found,
            "row of taps": pixels * positions(form)[0] * words(channels),
            "pixel of an image with padding": pixels * padded,
            "average of an image with padding": averages * padded,
        }

    def made(self, form: Form) -> int:
        """Return where in the scratch a pixel's outputs are: above its window's pixels' places."""
        return 4 * prod(positions(form))

    def scratch_bytes(self, form: Form) -> int:
        return (self.made(form) + form.target.shape[2]) * in_any_order(form)


def one_scale(op: Pool2d) -> bool:
    """All channels are requantized in the same way."""
    if not isinstance(op, AveragePool2d) or not isinstance(op.requant, FixedPoint):
        return True
    return len(set(op.requant.multipliers)) == len(set(op.requant.shifts)) == 1
