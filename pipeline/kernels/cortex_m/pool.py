"""Pooling, four channels at a time: a word of each pixel. Of a row in blocks, channel by channel,
four columns at a time: first down all columns, then along them; or sums of a row, added to those of
the rows before it."""

from __future__ import annotations

from math import ceil, prod
from typing import NamedTuple

from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import FixedPoint
from pipeline.kernels.by_row import BLOCK, RowKernel, RowLayout, added_row
from pipeline.kernels.cortex_m.costs import Fitted
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


class Along(NamedTuple):
    """Windows along a line of positions, each what all rows have of ``folded`` columns.

    Attributes:
        word: positions in one.
        size, stride, pad: of windows, in positions.
    """

    word: int
    folded: int
    size: int
    stride: int
    pad: int

    @classmethod
    def of(cls, op: Pool2d) -> Along:
        size, stride, pad = op.kernel[1], op.stride[1], op.padding[2]
        folded = 1 if size % 2 or stride % 2 or pad % 2 else 2
        word = BLOCK // 2 if op.combine == "add" else BLOCK
        return cls(word, folded, size // folded, stride // folded, pad // folded)

    @property
    def at_once(self) -> int:
        """Outputs that a word of positions has."""
        return ceil(self.word / self.stride)

    @property
    def left(self) -> int:
        """Words of the line left of column 0."""
        return ceil(self.pad / self.word)

    def words(self, columns: int, made: int) -> int:
        """Return those of a line for ``made`` outputs from so many columns."""
        reach = (made - 1) * self.stride - self.pad + self.size - 1 + self.word
        return self.left + ceil(max(words(columns) * BLOCK // self.folded, reach) / self.word)


class RowPool(Fitted, RowKernel):
    """All that a channel's row is made of is read before it is written."""

    word = "row_pool"
    takes = (
        f"pooling with windows of up to {MOST_TAPS} pixels that makes one row from rows in blocks, "
        "or averages of a whole image, without padding, that add one to exact sums"
    )

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Pool2d) or found is None:
            return False
        source, target = found
        made = target.blocked or target.pixels == 1
        few = form.partial or form.given.extents[0] * op.kernel[1] <= MOST_TAPS
        return source.blocked and made and few and one_scale(op)

    def rows(self, form: Form) -> tuple[RowLayout, RowLayout] | None:
        """Return both layouts; the output of sums is a pixel."""
        if not form.partial:
            return super().rows(form)
        op, source = form.op, added_row(form)
        if source is None or not isinstance(op, AveragePool2d) or any(op.padding):
            return None
        whole = op.kernel == form.source.shape[:2]
        return (source, RowLayout(1, source.channels, 1)) if whole else None

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        return None if form.partial else super().overlap(form, tensor)

    def scratch_bytes(self, form: Form) -> int:
        if form.partial:
            return 0
        assert isinstance(form.op, Pool2d)
        return BLOCK * Along.of(form.op).words(form.source.shape[1], form.target.shape[1])

    def counts(self, form: Form) -> Counts:
        """A word is four columns of a channel, or what is left over."""
        source, target = self.known(form)
        full, left = (source.channels * n for n in divmod(source.columns, BLOCK))
        each = {"word": full, "shorter word": source.channels * (left > 0)}
        if form.partial:
            return {**{f"{word} added": n for word, n in each.items()}, "sum": source.channels}
        assert isinstance(form.op, Pool2d)
        along, averages = Along.of(form.op), form.op.combine == "add"
        return {
            "word of a row": sum(each.values()) * form.given.extents[0],
            "word of 2 columns": sum(each.values()) * (along.folded == 2),
            "word of a tap": source.channels * -(-target.columns // along.at_once) * along.size,
            "output, average": target.bytes * averages,
            "output, maximum": target.bytes * (not averages and along.stride > 1),
            "average of an image with padding": target.bytes * averages * any(form.op.padding[2:]),
        }
