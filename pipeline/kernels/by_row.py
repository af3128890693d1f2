"""Base of the kernels for a row: rows in, a row out, how they lie, and what may lie over what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.kernels.fast import Fast
from pipeline.kernels.form import Form
from pipeline.kernels.safe_offset import SafeOffset

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


Stage = tuple[int | IntArray, Iterable[int], Iterable[int]]
"""A turn, or each channel's, and the columns that are read and written in it."""


@dataclass(frozen=True)
class AccessOrder:
    """AccessOrder in which a kernel reads and writes, counted in what it reads before it writes.

    Attributes:
        read: of each byte of an input row the last turn that reads it, -1: none does.
        written: of each byte of the output row the turn that writes it.
    """

    read: IntArray
    written: IntArray

    @classmethod
    def of(cls, source: RowLayout, target: RowLayout, stages: Iterable[Stage]) -> AccessOrder:
        read, written = np.full(source.bytes, -1), np.zeros(target.bytes, dtype=np.int64)
        for turn, taken, made in stages:
            for row, turns, columns in ((source, read, taken), (target, written, made)):
                for column in columns:
                    turns[row.places(column)] = turn
        return cls(read, written)

    @property
    def safe(self) -> SafeOffset:
        """Return where the output may begin above an input row: it ends before all that is still to
        be read, begins after that, or both begin at the same byte."""
        both = min(len(self.read), len(self.written))
        exactly = (self.read[:both] <= self.written[:both]).all()
        latest = int(self._unread(np.minimum, len(self.read)).min()) - 1
        earliest = int(self._unread(np.maximum, -1).max()) + 1
        return SafeOffset(2 * latest, 2 * earliest, (0,) if exactly else ())

    def forbids(self, apart: int) -> bool:
        """Check whether the output may not begin so many bytes after an input row does."""
        between = self.safe.apart(2 * len(self.written), 2 * len(self.read))
        return any(low < 2 * apart < high for low, high in between)

    def _unread(self, end: np.ufunc, none: int) -> IntArray:
        """Say for each byte of the output how far from it the first or last one of the input is
        that is still to be read when it is written; ``none``: where there is none."""
        later = np.full(max(self.read.max(), self.written.max()) + 2, none)
        read = np.flatnonzero(self.read >= 0)
        end.at(later, self.read[read], read)
        after = np.flip(end.accumulate(np.flip(later[1:])))
        return np.asarray(after[self.written] - np.arange(len(self.written)))


class RowKernel(Fast):
    """Makes one row of its output, all of it, from rows of its one activation."""

    follows = False

    def rows(self, form: Form) -> tuple[RowLayout, RowLayout] | None:
        """Return the layouts of the input's rows and of the output's; None if one is not known."""
        name, out = form.op.inputs[0], form.out.extents
        if len(form.parts) != 2 or len(out) != 3 or out[0] != 1 or form.partial:
            return None
        rings = any(any(part.rings) for part in form.parts.values())  # a loop's, which is kept
        if rings or not form.covers(form.op.output, slice(1, 3)):
            return None
        source, target = RowLayout.of(form, name), RowLayout.of(form, form.op.output)
        return (source, target) if source and target else None

    def why_not(self, form: Form) -> str:
        if why := super().why_not(form):
            return why
        if any(self.overlap(form, tensor) is None for tensor in form.overlaps):
            return f"{self.name} does not write over {form.op.inputs[0]} as its rows lie"
        return ""

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        """Follow ``access_order``: over any of the rows that it reads."""
        if tensor != form.op.inputs[0] or super().why_not(form):
            return None
        turns = self.access_order(form)
        safe = turns.safe
        return safe if safe.shared(2 * len(turns.written), 2 * len(turns.read)) else None

    def known(self, form: Form) -> tuple[RowLayout, RowLayout]:
        """``rows`` of a form that it takes."""
        found = self.rows(form)
        assert found is not None
        return found

    def unit(self, form: Form) -> tuple[int, ...]:
        """The row: what a part of it needs and another part overwrites is kept in registers."""
        return form.out.extents

    def access_order(self, form: Form) -> AccessOrder:
        """Time a form that it takes: here all of a channel's row is read, then that is written."""
        source, target = self.known(form)
        channel = np.arange(source.channels)
        return AccessOrder.of(
            source, target, [(channel, range(source.columns), range(target.columns))]
        )  # fmt: skip
