"""The time axis of a memory map: when each step of a plan begins and ends.

Where the plan uses a card the axis is the simulation's, in microseconds. Other plans have no time
before they are measured: theirs counts shares of the whole, and a stretch of layers is as wide as
its part of the work, but never too narrow to be seen.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pipeline.graph.access import size_of
from pipeline.graph.graph import Graph
from pipeline.plan.steps import Slice
from pipeline.plan.unrolled import Event, walk
from pipeline.plan.vocabulary import Clear, Compute, Finish, Move, Plan
from pipeline.timing.simulate import Timeline
from pipeline.timing.unroll import unrolled

Times = npt.NDArray[np.float64]

WHOLE = 100_000.0
"""The length of an axis that is not in microseconds."""
EVEN = 0.6
"""The part of it that all stretches of layers share alike; the rest is shared by their work."""


@dataclass(frozen=True)
class Stretch:
    """Layers that run one after another, or (``more`` than one) in turns: from when to when."""

    layers: tuple[str, ...]
    begin: float
    stop: float


@dataclass(frozen=True)
class Clock:
    """Times of the steps, in the order of ``walk``: begin and stop of each, synchronising steps
    included, which take no time.

    Attributes:
        unit: ``us``, or ``share`` of ``WHOLE``.
    """

    unit: str
    events: tuple[Event, ...]
    begin: Times
    stop: Times
    end: float

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The layers in the order they begin; those whose steps mix are one stretch."""
        first, last = dict[str, float](), dict[str, float]()
        for event, begin, stop in zip(self.events, self.begin, self.stop, strict=True):
            if name := layer(event):
                first[name] = min(first.get(name, begin), begin)
                last[name] = max(last.get(name, stop), stop)
        found: list[Stretch] = []
        for name in sorted(first, key=lambda name: (first[name], last[name])):
            if found and first[name] < found[-1].stop:
                before = found.pop()
                found.append(
                    Stretch((*before.layers, name), before.begin, max(before.stop, last[name]))
                )
            else:
                found.append(Stretch((name,), first[name], last[name]))
        return tuple(found)


def layer(event: Event) -> str:
    """Return the operator that a step computes for; "" for moves and synchronisation."""
    step = event.step
    return step.op if isinstance(step, Compute | Clear | Finish) else ""


def written(event: Event) -> Slice | None:
    """Return the slice that a step writes; None for one that only synchronises."""
    match event.step:
        case Compute(out=out) | Finish(out=out):
            return out
        case Clear(acc=acc):
            return acc
        case Move(dst=dst):
            return dst
    return None


def by_work(plan: Plan, graph: Graph) -> Clock:
    """Steps one after another, in the order of ``walk``."""
    events = tuple(walk(plan))
    work = np.array([_work(plan, graph, event) for event in events])
    total: defaultdict[str, float] = defaultdict(float)
    for event, amount in zip(events, work, strict=True):
        total[layer(event)] += amount
    each = np.array([total[layer(event)] for event in events])  # of the whole layer
    layers = sum(amount > 0 for amount in total.values()) or 1
    even = np.divide(work, each, out=np.zeros_like(work), where=each > 0) / layers
    widths = EVEN * even + (1 - EVEN) * work / (float(work.sum()) or 1.0)
    widths *= WHOLE / (float(widths.sum()) or 1.0)
    stop = np.cumsum(widths)
    begin = np.concatenate([[0.0], stop[:-1]])  # each where the one before it stops, to the bit
    return Clock("share", events, begin[: len(stop)], stop, WHOLE)


def _work(plan: Plan, graph: Graph, event: Event) -> float:
    """Multiply–accumulates of a step, one for each element that it writes besides."""
    piece = written(event)
    if piece is None:
        return 0.0
    buffer = plan.buffer[piece.buffer]
    elements = float(size_of(piece.box(buffer.shape, event.env)))
    if not isinstance(event.step, Compute):
        return elements
    op = graph.operator(event.step.op)
    return elements * (1 + op.macs(graph.tensors) / graph.tensors[op.output].size)


def simulated(plan: Plan, timeline: Timeline) -> Clock:
    """Steps as ``timeline`` runs them; one that takes no time is where its track is then."""
    events = tuple(walk(plan))
    begin, stop = np.zeros(len(events)), np.zeros(len(events))
    leaves = 0
    for number, track in enumerate(unrolled(plan, lambda step, runs: None)):
        chosen = timeline.track == number
        known = {
            (int(task), int(run)): place
            for place, (task, run) in enumerate(
                zip(timeline.task[chosen], timeline.run[chosen], strict=True)
            )
        }
        starts, stops, now = timeline.start[chosen], timeline.stop[chosen], 0.0
        mine = [n for n, event in enumerate(events) if event.track == number]
        for n, leaf, run in zip(mine, track.leaf, track.run, strict=True):
            place = known.get((int(leaf) + leaves, int(run)))
            begin[n] = now if place is None else starts[place]
            stop[n] = now = begin[n] if place is None else float(stops[place])
        leaves += len(track.leaves)
    return Clock("us", events, begin, stop, timeline.makespan_us)
