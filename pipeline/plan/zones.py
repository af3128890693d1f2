"""Stretches of memories that have nothing to do with one another."""

from __future__ import annotations

from bisect import bisect

import numpy as np

from pipeline.plan.vocabulary import Buffer, Plan

Zone = tuple[str, int]
"""A memory, and the number of a stretch of it."""


class Zones:
    """Zones of a plan: each place of a buffer, with every granule that it touches, lies in one."""

    def __init__(self, plan: Plan) -> None:
        self._starts: dict[str, list[int]] = {}
        self._of: dict[int, Zone] = {}
        for memory in plan.memories:
            granule, ends = 2 * memory.granule_bytes, [np.zeros((2, 0), dtype=np.int64)]
            for buffer in plan.buffers:
                if buffer.memory == memory.name:
                    shifts = buffer.copy_stride * np.arange(buffer.copies)
                    ends.append(np.add.outer(buffer.at(0).extent, shifts))
            low, high = np.concatenate(ends, axis=1)
            order = np.argsort(low, kind="stable")
            low, high = low[order] // granule, -(-high[order] // granule)
            begin = np.ones(len(low), dtype=bool)
            begin[1:] = low[1:] >= np.maximum.accumulate(high)[:-1]
            self._starts[memory.name] = (low[begin] * granule).tolist()

    def of(self, place: Buffer) -> Zone:
        """Find the zone of a buffer of one copy; ``place`` must be the plan's (``Buffer.at``)."""
        if (key := id(place)) not in self._of:
            self._of[key] = self.at(place.memory, place.extent[0])
        return self._of[key]

    def at(self, memory: str, nibble: int) -> Zone:
        return memory, bisect(self._starts[memory], nibble)
