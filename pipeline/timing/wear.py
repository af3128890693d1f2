"""Wear of a card's cells by inferences that follow each other without end; how long they last.

A cell endures some cycles; wear levelling spreads writes over all cells. Half of the cells have
failed when half of ``capacity * endurance_cycles`` is written, the first one when
``capacity * first_failure_cycles`` is (SwapNN, section 5.4).

What is written to cells lies between two figures, since nobody says how a card keeps its blocks: a
card that gathers blocks writes them alone; one that keeps a single erase unit open copies a whole
unit whenever the next write is in another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.hardware import Card
from pipeline.timing.simulate import Timeline

DAYS_A_YEAR = 365.0
US_A_DAY = 86_400e6


@dataclass(frozen=True)
class Written:
    """Bytes that all frames of a plan write.

    Attributes:
        asked: what is to be written: feature maps, and the input, which is fed by way of the card.
        stored: whole blocks of it.
        erased: units that a card with a single open one fills or copies for it; no less.
    """

    asked: float
    stored: float
    erased: float

    @property
    def block_amplification(self) -> float:
        """Bytes stored for each that was to be written; 0 where nothing was."""
        return self.stored / self.asked if self.asked else 0.0

    @property
    def erase_amplification(self) -> float:
        """The same for units that are erased: the most."""
        return self.erased / self.asked if self.asked else 0.0


def written(timeline: Timeline, card: Card, input_bytes: int) -> Written:
    """
    Args:
        input_bytes: of a frame.
    """
    block = card.block_bytes if card.timing == "card" else 1
    writes = [task for task in timeline.tasks if task.kind == "write"]
    fed = timeline.frames * input_bytes
    asked = fed + sum(float(task.bytes.sum()) for task in writes)
    stored = sum(float(task.stored.sum()) for task in writes)
    stored += timeline.frames * -(-input_bytes // block) * block
    opened = _opened(_in_time(timeline), card.erase_bytes)
    opened += timeline.frames * -(-input_bytes // card.erase_bytes)
    return Written(asked, stored, max(stored, float(opened * card.erase_bytes)))


def _in_time(timeline: Timeline) -> IntArray:
    """Return the places of all writes, in the order in which they begin: (writes, 2)."""
    writes = np.array([task.kind == "write" for task in timeline.tasks], bool)[timeline.task]
    order = np.flatnonzero(writes)[np.argsort(timeline.start[writes], kind="stable")]
    found = [timeline.tasks[timeline.task[n]].ends[timeline.run[n]] for n in order]
    return np.array(found, np.int64).reshape(-1, 2)


def _opened(places: IntArray, unit: int) -> int:
    """Count how often a card with one open erase unit opens one."""
    if not len(places):
        return 0
    first, last = places[:, 0] // unit, (places[:, 1] - 1) // unit
    return int((last - first + 1).sum() - (first[1:] == last[:-1]).sum())


@dataclass(frozen=True)
class Wear:
    """``bytes_a_day`` reach the card's cells. Years are None where nothing is written, or where
    nobody knows the cycles."""

    bytes_a_day: float
    years_first_failure: float | None
    years_half: float | None


def wear(written_bytes: float, makespan_us: float, card: Card) -> Wear:
    """
    Args:
        written_bytes: that the cells store in ``makespan_us``.
    """
    a_day = written_bytes * US_A_DAY / makespan_us if makespan_us else 0.0
    return Wear(
        a_day,
        years(a_day, card.bytes * card.first_failure_cycles),
        years(a_day, half_bytes(card.bytes, card.endurance_cycles)),
    )


def half_bytes(capacity_bytes: float, endurance_cycles: float) -> float:
    """Return the bytes written until half of the cells have failed."""
    return 0.5 * capacity_bytes * endurance_cycles


def years(bytes_a_day: float, endured_bytes: float) -> float | None:
    """Until ``endured_bytes`` are written."""
    if not bytes_a_day or not endured_bytes:
        return None
    return endured_bytes / bytes_a_day / DAYS_A_YEAR
