"""The steps of a simulated plan as bars of a chart: merged where there are too many to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Plan
from pipeline.timing.simulate import Timeline
from pipeline.timing.unroll import Times

MOST_BARS = 40_000
"""Bars in one page; a browser draws so many while one drags."""


@dataclass(frozen=True)
class Bars:
    """One track: (bars,) each, in order of time.

    Attributes:
        start_us, stop_us: when.
        layer: which of the layers, by number; -1 for none.
        kind: 0 computing, 1 reading from the card, 2 writing to it.
        steps: how many steps a bar stands for.
        busy_us: what they take; less than the bar where there are gaps between them.
    """

    track: str
    start_us: Times
    stop_us: Times
    layer: IntArray
    kind: IntArray
    steps: IntArray
    busy_us: Times

    def content(self) -> dict[str, Any]:
        """Return plain values, times in whole microseconds."""
        return {
            "name": self.track,
            "start": self.start_us.round().astype(int).tolist(),
            "took": (self.stop_us - self.start_us).round().astype(int).tolist(),
            "layer": self.layer.tolist(),
            "kind": self.kind.tolist(),
            "steps": self.steps.tolist(),
            "busy": self.busy_us.round().astype(int).tolist(),
        }


KINDS = {"compute": 0, "read": 1, "write": 2}


def bars(
    plan: Plan, timeline: Timeline, layers: Sequence[str], most: int = MOST_BARS
) -> tuple[Bars, ...]:
    """Return the bars of each track that has any; at most about ``most`` in all.

    Where there are more steps, those of one layer and kind become one bar when less than a gap lies
    between them; the gap is doubled until they are few.
    """
    number = {name: n for n, name in enumerate(layers)}
    layer = np.array([number.get(task.op, -1) for task in timeline.tasks], dtype=np.int64)
    kind = np.array([KINDS.get(task.kind, 0) for task in timeline.tasks], dtype=np.int64)
    every = []
    for n, track in enumerate(plan.tracks):
        chosen = timeline.track == n
        if chosen.any():
            task = timeline.task[chosen]
            one = np.ones(len(task), dtype=np.int64)
            start, stop = timeline.start[chosen], timeline.stop[chosen]
            every.append(Bars(track.name, start, stop, layer[task], kind[task], one, stop - start))
    gap_us = max(timeline.makespan_us / 1e7, 1e-6)
    while sum(len(each.start_us) for each in every) > most and gap_us <= timeline.makespan_us:
        every = [_merged(each, gap_us) for each in every]
        gap_us *= 2
    return tuple(every)


def _merged(bars: Bars, gap_us: float) -> Bars:
    same = (bars.layer[1:] == bars.layer[:-1]) & (bars.kind[1:] == bars.kind[:-1])
    near = bars.start_us[1:] - bars.stop_us[:-1] <= gap_us
    first = np.flatnonzero(np.concatenate([[True], ~(same & near)]))
    last = np.concatenate([first[1:], [len(bars.start_us)]]) - 1
    return Bars(
        bars.track,
        bars.start_us[first],
        bars.stop_us[last],
        bars.layer[first],
        bars.kind[first],
        np.add.reduceat(bars.steps, first),
        np.add.reduceat(bars.busy_us, first),
    )
