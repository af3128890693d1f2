"""Times that the core and the card are busy: alone, together, or neither."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.timing.simulate import Timeline
from pipeline.timing.unroll import Times


@dataclass(frozen=True)
class States:
    """Microseconds; the four states are apart and add up to the makespan.

    Attributes:
        compute_us, io_us: only the core, or only the card, is busy.
        both_us, idle_us: both are, or neither is.
        computing_us, read_us, write_us: of steps of these kinds, in any state.
    """

    compute_us: float
    io_us: float
    both_us: float
    idle_us: float
    computing_us: float
    read_us: float
    write_us: float

    @property
    def core_us(self) -> float:
        return self.compute_us + self.both_us


def states(timeline: Timeline, dma: bool = True) -> States:
    """``dma``: without it the core is busy, too, whenever the card is."""
    kinds = np.array([str(task.kind) for task in timeline.tasks], dtype="<U8")[timeline.task]
    reads, writes = kinds == "read", kinds == "write"
    card = reads | writes
    core = ~card if dma else np.ones_like(card)
    busy = [_covered(timeline, chosen) for chosen in (core, card, core | card)]
    both = busy[0] + busy[1] - busy[2]
    took = timeline.stop - timeline.start
    return States(
        compute_us=busy[0] - both,
        io_us=busy[1] - both,
        both_us=both,
        idle_us=timeline.makespan_us - busy[2],
        computing_us=float(took[~card].sum()),
        read_us=float(took[reads].sum()),
        write_us=float(took[writes].sum()),
    )


def _covered(timeline: Timeline, chosen: Times) -> float:
    """Return the time in which any of the ``chosen`` steps runs."""
    order = np.argsort(timeline.start[chosen], kind="stable")
    start, stop = timeline.start[chosen][order], timeline.stop[chosen][order]
    if not len(start):
        return 0.0
    until = np.maximum.accumulate(stop)
    gaps = np.maximum(start[1:] - until[:-1], 0.0)
    return float(until[-1] - start[0] - gaps.sum())
