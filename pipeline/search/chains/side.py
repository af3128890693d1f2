"""One axis of a rectangle of outputs: what they read along it, and how what is live rises while
lines are computed along it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.graph.tensor import IntArray

NEVER = 1 << 40


@dataclass(frozen=True)
class Side:
    """
    Attributes:
        reads: (outputs, inputs), whether one reads the other.
    """

    reads: IntArray

    @property
    def outputs(self) -> int:
        return len(self.reads)

    @property
    def flipped(self) -> Side:
        """From its end."""
        return Side(self.reads[::-1, ::-1])

    @cached_property
    def even(self) -> bool:
        """Whether it is the same from its end."""
        return np.array_equal(self.reads, self.flipped.reads)

    @cached_property
    def count(self) -> IntArray:
        """[a, b] inputs that outputs a to b (exclusive) read, (outputs + 1, outputs + 1)."""
        found = np.zeros((self.outputs + 1, self.outputs + 1), dtype=np.int64)
        for first in range(self.outputs):
            found[first, first + 1 :] = np.logical_or.accumulate(self.reads[first:]).sum(axis=1)
        return found

    def freed(self, at_end: bool, thickness: int, stops: IntArray) -> IntArray:
        """[a, n, j] inputs that nothing reads any more once j + 1 of so many lines are off an end
        of outputs a to ``stops[n]``; (outputs + 1, stops, thickness)."""
        a, b = np.arange(self.outputs + 1)[:, None], stops[None]
        several = range(1, thickness + 1)
        left = [(a, b - n) if at_end else (a + n, b) for n in several]
        most = self.outputs
        kept = [self.count[np.minimum(first, most), np.maximum(last, 0)] for first, last in left]
        return np.stack([self.count[a, b] - each for each in kept], axis=2)


@dataclass(frozen=True)
class Rises:
    """Nibbles that ``thickness`` lines hold at most and write while they are computed.

    Attributes:
        kinds: [a, n] which of the tables is that of lines off outputs a to ``stops[n]``.
        forwards, backwards: [kind, a, b] of lines of outputs a to b.
    """

    kinds: IntArray
    forwards: IntArray
    backwards: IntArray

    @classmethod
    def of(
        cls, one: Side, other: Side, at_end: bool, thickness: int, stops: IntArray,
        fin: int, fout: int,
    ) -> Rises:  # fmt: skip
        """Of lines off an end of ``one``, along ``other``."""
        freed = one.freed(at_end, thickness, stops)
        digits = (one.reads.shape[1] + 1) ** np.arange(thickness)
        _, first, kinds = np.unique(freed @ digits, return_index=True, return_inverse=True)
        alike = freed.reshape(-1, thickness)[first]
        tables = (_rise(alike, other.count, way, fin, fout) for way in (False, True))
        return cls(kinds.reshape(freed.shape[:2]), *tables)

    @cached_property
    def least(self) -> IntArray:
        """In the better direction."""
        return np.minimum(self.forwards, self.backwards)


def _rise(freed: IntArray, count: IntArray, backwards: bool, fin: int, fout: int) -> IntArray:
    """[kind, a, b]; ``freed``: (kinds, lines). With p outputs of each line to go, what is live has
    grown by those that are made and shrunk by the inputs of which only those p were left:
    ``rise(a, b) = max(live(a, b), lines * fout + rise(a + 1, b))``, and so from the other end."""
    ends = len(count)
    lines = freed.shape[1]
    inner = np.zeros_like(count)
    if backwards:
        inner[:, 1:] = count[:, :-1]
    else:
        inner[:-1] = count[1:]
    live = np.full((len(freed), ends, ends), -NEVER, dtype=np.int64)
    for n in range(lines):
        before, after = (freed[:, -1] - freed[:, n])[:, None, None], freed[:, n, None, None]
        np.maximum(live, fin * (before * count + after * inner) + fout * (n + 1), out=live)
    live[:, np.tri(ends, dtype=bool)] = -NEVER  # of no outputs
    made = lines * fout * np.arange(ends)
    if backwards:
        return np.asarray(np.maximum.accumulate(live - made, axis=2) + made)
    there = live + made[:, None]
    return np.asarray(np.maximum.accumulate(there[:, ::-1], axis=1)[:, ::-1] - made[:, None])
