"""Layout of a row, as its kernels see it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.kernels.form import Form

BLOCK = 4
"""Pixels of one channel that a word holds."""

MOST_PLANE = 6
"""Columns of rows that are better one block: each channel in one piece."""


@dataclass(frozen=True)
class RowLayout:
    """``[columns / pixels][channels][pixels]`` bytes, the last block may have fewer pixels; of 1
    pixel: channels last."""

    columns: int
    channels: int
    pixels: int

    @classmethod
    def of(cls, form: Form, tensor: str) -> RowLayout | None:
        """Return the layout of ``tensor``'s rows that ``form`` takes; None: they lie otherwise."""
        part, shape = form.parts[tensor], form.graph.tensors[tensor].shape
        if len(shape) != 3 or part.bits != 8:
            return None
        if part.spread == "blocks":
            return cls(shape[1], shape[2], part.pixels)
        return cls(shape[1], shape[2], 1) if form.in_packed_rows(tensor) else None

    @property
    def bytes(self) -> int:
        return self.columns * self.channels

    @property
    def blocked(self) -> bool:
        """Check whether words hold neighbours: blocks of four, or one of all columns."""
        return self.pixels == BLOCK or self.plane

    @property
    def plane(self) -> bool:
        return self.pixels >= self.columns

    @property
    def full(self) -> int:
        """Columns in blocks that are whole ones."""
        return self.columns - self.columns % self.pixels

    def apart(self, column: int) -> int:
        """Bytes from a channel to the next."""
        return self.pixels if column < self.full else self.columns - self.full

    def at(self, column: int) -> int:
        """Bytes from the row's beginning to channel 0 of a pixel; of the column after the last one
        the row's size."""
        first = column - column % self.pixels
        return first * self.channels + column - first if column < self.columns else self.bytes

    def places(self, column: int) -> slice:
        """Return the places of all channels of a pixel, in a row."""
        first, apart = self.at(column), self.apart(column)
        return slice(first, first + (self.channels - 1) * apart + 1, apart)


def best_pixels(columns: int) -> int:
    """Choose the pixels of a block, for rows of so many columns."""
    return columns if columns <= MOST_PLANE else BLOCK


def added_row(form: Form) -> RowLayout | None:
    """Return the layout of the row added to exact sums, all of them side by side; None: none is."""
    out, shape = form.op.output, form.source.shape
    exact = form.partial and not form.overlaps and (form.out.bits, form.out.step) == (32, 1)
    if not (exact and form.covers(out) and form.in_one_piece(out)):
        return None
    whole = len(shape) == 3 and form.given.extents == (1, *shape[1:])
    return RowLayout.of(form, form.op.inputs[0]) if whole else None
