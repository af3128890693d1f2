"""Base of the kernels for a row: rows in, a row out, and what may lie over what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.kernels.fast import Fast
from pipeline.kernels.form import Form
from pipeline.kernels.row_layout import RowLayout
from pipeline.kernels.safe_offset import SafeOffset

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
        """For each byte of the output how far from it the first or last one of the input is that is
        still to be read when it is written; ``none``: where there is none."""
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
