"""A block of operators pixel by pixel: each makes what the next one needs next, so that of what is
between the block's ends only that is held.

Of a residual block of two 3 × 3 convolutions with images w wide that is 2w + 2 pixels and as many
as are made at once, beside the block's input, over which the sum is written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.graph.access import Operand
from pipeline.graph.tensor import IntArray
from pipeline.plan.reads import read_times
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.items import Item


class Way(NamedTuple):
    """How a block goes: ``pixels`` of a row at once, row by row; ``by_column``: of a column, column
    by column; ``from_last``: from the last one of these on, ``backwards``: each from its end."""

    pixels: int
    by_column: bool = False
    from_last: bool = False
    backwards: bool = False


NOT_READ = np.iinfo(np.int64).max


def woven(flow: Flow, span: Span, way: Way) -> Item:
    """The last operator makes some pixels at once; what it needs for that is made just before: of
    several inputs those that the flow makes later first."""
    last = span.stop - 1
    height, width, _ = flow.tensors[flow.operators[last].output].shape
    chunk = np.arange(height if way.by_column else width) // way.pixels
    chunks = np.broadcast_to(chunk[:, None] if way.by_column else chunk, (height, width))
    steps = {last: _Steps.of(np.zeros((height, width), dtype=np.int64), chunks, way)}
    for number in reversed(range(span.first, last)):
        wanted = _wanted(flow, number, steps)
        made = _Steps.of(wanted, np.zeros_like(wanted), way)
        steps = {n: each.after(made) for n, each in steps.items()} | {number: made.in_turn}
    order = np.concatenate([_order(number, made) for number, made in steps.items()])
    time = np.concatenate([made.time for made in steps.values()])
    turn = np.argsort(time, kind="stable")
    return Item(flow, span, order[turn], np.flatnonzero(np.diff(time[turn], prepend=-1)))


class _Steps(NamedTuple):
    """That make some pixels of a tensor.

    Attributes:
        rows, columns, time: of each pixel, and which step makes it, of those of all operators.
        before: of each step the one that wants it.
    """

    rows: IntArray
    columns: IntArray
    time: IntArray
    before: IntArray

    @classmethod
    def of(cls, wanted: IntArray, chunks: IntArray, way: Way) -> _Steps:
        """Of pixels that are ``wanted`` by a step each, (h, w): neighbours of a line, and of a
        chunk, together."""
        rows, columns = np.nonzero(wanted != NOT_READ)
        line, along = (columns, rows) if way.by_column else (rows, columns)
        wants = wanted[rows, columns]
        keys = (-along if way.backwards else along), (-line if way.from_last else line), wants
        turn = np.lexsort(keys)
        rows, columns = rows[turn], columns[turn]
        gap = np.abs(np.diff(along[turn])) > (0 if way.pixels == 1 else 1)
        parts = line[turn], wants[turn], chunks[rows, columns]
        new = np.any([gap, *(np.diff(each) != 0 for each in parts)], axis=0)
        first = np.concatenate([[True], new])[: len(rows)]  # none where windows lie in padding
        return cls(rows, columns, np.cumsum(first) - 1, wants[turn][first])

    @property
    def in_turn(self) -> _Steps:
        """Each just before the one that wants it."""
        return self._replace(time=self.time + self.before[self.time])

    def after(self, others: _Steps) -> _Steps:
        """What is left once those are in turn."""
        return self._replace(time=self.time + np.searchsorted(others.before, self.time, "right"))


def _order(number: int, made: _Steps) -> IntArray:
    zero = np.zeros_like(made.time)
    return np.stack([zero + number, made.rows, made.columns, zero], axis=1)


def _wanted(flow: Flow, number: int, steps: dict[int, _Steps]) -> IntArray:
    """The first of ``steps`` that reads each pixel of what operator ``number`` makes; (h, w)."""
    output = flow.operators[number].output
    found = np.full(flow.tensors[output].shape[:2], NOT_READ)
    grid = [np.arange(extent) for extent in found.shape]
    for reader, made in steps.items():
        op = flow.operators[reader]
        times = np.full(flow.tensors[op.output].shape[:2], NOT_READ)
        times[made.rows, made.columns] = made.time
        box = tuple((0, extent) for extent in times.shape)
        for operand in op.reads(flow.tensors):
            if operand.tensor == output:
                spatial = Operand(output, operand.windows[:2])
                found = np.minimum(found, read_times(spatial, box, times, grid, last=False))
    return found
