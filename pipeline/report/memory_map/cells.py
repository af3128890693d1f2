"""The cells of one memory while a plan is walked: what each holds, since when, how long needed.

A cell is a nibble, or several of a large memory. What it holds has an owner: a buffer's copy, and
which turn of its ring. An owner's content lives from its first write to its last read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.report.memory_map.clock import Times

MOST_PIECES = 12_000
"""Most pieces of a memory, as far as rounding times to ``FINEST`` … ``COARSEST`` parts helps."""
FINEST, COARSEST = 8_192, 1_024

NOBODY = -1
PLACE = 1 << 32
"""An owner is a buffer's copy in a frame, times this, plus which turn of its ring it is."""


@dataclass(frozen=True)
class Pieces:
    """Contents of a memory: (n,) each, in the order of the buffers.

    Attributes:
        buffer: its number in the plan.
        low, high: nibbles, ends exclusive.
        born, dies: on the clock.
    """

    buffer: IntArray
    low: IntArray
    high: IntArray
    born: Times
    dies: Times

    def __len__(self) -> int:
        return len(self.buffer)


class Cells:
    """The cells of one memory while the plan is walked."""

    def __init__(self, nibbles: int, grain: int, tick: float) -> None:
        count = -(-nibbles // grain) + 1  # a run's end is rounded
        self.grain, self.tick = grain, tick
        self.owner = np.full(count, NOBODY, dtype=np.int64)
        self.born, self.last = np.zeros(count), np.zeros(count)
        self.ended: list[tuple[IntArray, IntArray, Times, Times]] = []

    def write(
        self, cells: IntArray, owner: IntArray | int, when: Times | float, until: float
    ) -> None:
        """``owner`` takes the cells over; what they held before has lived until its last read."""
        before, when = self.owner[cells], np.broadcast_to(when, cells.shape)
        owners = np.broadcast_to(owner, cells.shape)
        same = before == owners
        if self.tick:  # another turn of the same ring, which was hardly empty meanwhile
            near = when - self.last[cells] <= self.tick
            same |= near & (before // PLACE == owners // PLACE)
        new = cells[~same]
        self._end(new, when[~same])
        self.born[new], self.last[new] = when[~same], 0.0
        self.owner[cells] = owners
        self.last[cells] = np.maximum(self.last[cells], until)

    def read(self, cells: IntArray, owner: IntArray | int, when: Times | float) -> None:
        mine = self.owner[cells] == owner
        np.maximum.at(self.last, cells[mine], np.broadcast_to(when, cells.shape)[mine])

    def _end(self, cells: IntArray, when: Times | float) -> None:
        held = self.owner[cells] != NOBODY
        cells, limit = cells[held], np.broadcast_to(when, cells.shape)[held]
        dies = np.minimum(self.last[cells], limit)
        self.ended.append((cells, self.owner[cells], self.born[cells], dies))

    def pieces(self, buffer_of: IntArray, end: float) -> Pieces:
        """Return all lives, neighbours that live alike as one; where these are too many, those
        whose times are almost the same, too."""
        self._end(np.arange(len(self.owner)), np.inf)
        cell, owner, born, dies = (np.concatenate(each) for each in zip(*self.ended, strict=True))
        order = np.lexsort((cell, dies, born, owner))
        found, tick = _joined(cell[order], owner[order], born[order], dies[order]), end / FINEST
        while len(found[0]) > MOST_PIECES and tick <= end / COARSEST:
            born, dies = (np.round(each / tick) * tick for each in (born, dies))
            dies = np.maximum(dies, born + tick)
            order = np.lexsort((cell, dies, born, owner))
            found = _joined(cell[order], owner[order], born[order], dies[order])
            tick *= 2
        low, high, owner, born, dies = found
        return Pieces(buffer_of[owner // PLACE], low * self.grain, high * self.grain, born, dies)


def _joined(
    cell: IntArray, owner: IntArray, born: Times, dies: Times
) -> tuple[IntArray, IntArray, IntArray, Times, Times]:
    """Sorted cells, those side by side with all else alike as one: (low, high, owner, …)."""
    alike = np.ones(max(0, len(cell) - 1), dtype=bool)
    for each, step in ((cell, 1), (owner, 0), (born, 0), (dies, 0)):
        alike &= np.diff(each) == step
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(cell)), dtype=bool), ~alike]))
    last = np.concatenate([first[1:], [len(cell)]])[: len(first)].astype(np.int64) - 1
    return cell[first], cell[last] + 1, owner[first], born[first], dies[first]


def rounded(starts: IntArray, length: int, grain: int) -> IntArray:
    """Return the cells, ascending, that runs of so many nibbles take: at least one each, and no two
    runs that touch share one."""
    low = (starts + grain // 2) // grain
    high = np.maximum((starts + length + grain // 2) // grain, low + 1)
    if len(low) == 1:
        return np.arange(low[0], high[0])
    origin = int(low.min())
    edges = np.bincount(low - origin, minlength=int(high.max()) - origin + 1)
    edges = edges - np.bincount(high - origin, minlength=len(edges))
    return np.asarray(np.flatnonzero(np.cumsum(edges)) + origin)
