"""The tracks of a plan side by side, each step as early as the counters allow.

Discrete events: the track that is least far in time goes on, so that signals come in the order of
time; a wait that is not met stops its track until the signal that meets it. Nothing is random, and
of tracks at the same time the first goes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.plan import matches
from pipeline.plan.rates import Rates, noted_alone_us, noted_us
from pipeline.plan.vocabulary import Plan, PlanError
from pipeline.timing.tasks import Costs, TimedStep
from pipeline.timing.unroll import Times, unrolled


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Start and end of each step that takes time, in microseconds; a track's steps in its order.

    Attributes:
        tasks: what ``task`` counts in: the plan's leaf steps.
        track, task, run: (steps,) of which track, which leaf, which of its runs.
        start, stop: (steps,).
        makespan_us: when the last track ends.
        frames: how many inferences that is.
        sealing_us: of it, what the core seals and opens in; within the steps that move.
        halted_us: by how much that makes the other steps longer.
        alone_us: what one inference computes in unlimited SRAM; 0: what these steps do.
    """

    tasks: tuple[TimedStep, ...]
    track: IntArray
    task: IntArray
    run: IntArray
    start: Times
    stop: Times
    makespan_us: float
    frames: int
    sealing_us: float = 0.0
    halted_us: float = 0.0
    alone_us: float = 0.0


@dataclass
class _Track:
    """The state of a track: its events as lists, the next one, its clock."""

    kind: list[int]
    amount: list[float]
    counter: list[int]
    place: int = 0
    clock: float = 0.0
    waiting: bool = False


STEP, SIGNAL, WAIT = 0, 1, 2


def simulate(
    plan: Plan, graph: Graph, hardware: Hardware, calls: Mapping[str, Times] | None = None,
    sealing: float = 1.0,
) -> Timeline:  # fmt: skip
    """
    Args:
        calls: microseconds of each operator's calls of kernels, as they were counted. None: those
            that the plan notes; of operators that it does not ``hardware.cycles_per_mac``.
        sealing: how many times as long as modelled the core seals and opens.

    Raises:
        PlanError: when every track that is not at its end waits, or the plan is another graph's.
    """
    matches.check(plan, graph)
    costs = Costs(plan, graph, Rates.of(hardware), noted_us(plan, graph))
    tracks = unrolled(plan, costs.visit)
    costs.close()
    counters = {task.counter: n for n, task in enumerate(costs.tasks)}
    kinds = {"signal": SIGNAL, "wait": WAIT}
    offset, running, leaves, runs = 0, [], [], []
    for each in tracks:
        tasks = costs.tasks[offset : offset + len(each.leaves)]
        leaf = each.leaf + offset
        lengths = np.cumsum([0, *(len(task.us) for task in tasks)])
        amounts = np.concatenate([np.zeros(0), *(task.us for task in tasks)])
        amount = amounts[lengths[each.leaf] + each.run]
        for op, us in (calls or {}).items():
            computes = np.array([(t.kind, t.op) == ("compute", op) for t in tasks], dtype=bool)
            here = computes[each.leaf]
            amount[here] = _as_counted(amount[here], us)
        kind = np.array([kinds.get(task.kind, STEP) for task in tasks], dtype=np.int64)[each.leaf]
        name = np.array([counters[task.counter] for task in tasks], dtype=np.int64)[each.leaf]
        busy = (kind != STEP) | (amount > 0)
        running.append(_Track(kind[busy].tolist(), amount[busy].tolist(), name[busy].tolist()))
        takes = busy & (kind == STEP)
        leaves.append(leaf[takes])
        runs.append(each.run[takes])
        offset += len(each.leaves)
    names = [track.name for track in plan.tracks]
    starts, makespan = _run(running, names, alone=not hardware.card.dma)
    durations = [
        [amount for kind, amount in zip(track.kind, track.amount, strict=True) if kind == STEP]
        for track in running
    ]
    begin = np.concatenate([np.zeros(0), *(np.array(each, dtype=float) for each in starts)])
    took = np.concatenate([np.zeros(0), *(np.array(each, dtype=float) for each in durations)])
    number = [np.full(len(each), n, dtype=np.int64) for n, each in enumerate(starts)]
    leaf, run = np.concatenate(leaves), np.concatenate(runs)
    sealing_us = _sealing_us(costs.tasks, leaf, run) * sealing
    begin, end, makespan = _halted(begin, begin + took, makespan, sealing_us)
    longer = (end - begin - took)[sealing_us == 0]
    return Timeline(
        tasks=tuple(costs.tasks),
        track=np.concatenate(number),
        task=leaf,
        run=run,
        start=begin,
        stop=end,
        makespan_us=makespan,
        frames=plan.frames,
        sealing_us=float(sealing_us.sum()),
        halted_us=float(longer.sum()) if sealing_us.any() else 0.0,
        alone_us=noted_alone_us(plan),
    )


def _as_counted(planned: Times, calls: Times) -> Times:
    """Durations of steps: of their calls; shared out as planned where a step is no call, or
    several."""
    if len(calls) == len(planned):
        return calls
    return planned * (calls.sum() / planned.sum() if planned.any() else 0.0)


def _sealing_us(tasks: Sequence[TimedStep], leaf: IntArray, run: IntArray) -> Times:
    """Return the microseconds of sealing and opening within each step; (steps,)."""
    every = [task.sealing_us if len(task.sealing_us) else np.zeros(len(task.us)) for task in tasks]
    first = np.cumsum([0, *(len(us) for us in every)])[:-1]
    return np.concatenate([np.zeros(0), *every])[first[leaf] + run] if len(leaf) else np.zeros(0)


def _halted(
    start: Times, stop: Times, makespan: float, sealing_us: Times
) -> tuple[Times, Times, float]:
    """Times when all tracks stand still while the core seals or opens what a step moves, which is
    counted at that step's end: no card goes on then, and no kernel."""
    at = np.argsort(stop, kind="stable")
    ends, passed = stop[at], np.concatenate([[0.0], np.cumsum(sealing_us[at])])

    def later(times: Times) -> Times:
        moved: Times = times + passed[np.searchsorted(ends, times, side="right")]
        return moved

    return later(start), later(stop), makespan + float(passed[-1])


def _run(
    tracks: Sequence[_Track], names: Sequence[str], alone: bool
) -> tuple[list[list[float]], float]:
    """(start of each step by track, makespan); ``alone``: one step at a time, on any track."""
    counted: dict[int, int] = {}
    starts: list[list[float]] = [[] for _ in tracks]
    engine = 0.0
    while True:
        able = [n for n, t in enumerate(tracks) if not t.waiting and t.place < len(t.kind)]
        if not able:
            break
        chosen = min(able, key=lambda n: tracks[n].clock)
        others = min((tracks[n].clock for n in able if n != chosen), default=inf)
        track, begun = tracks[chosen], starts[chosen]
        kind, amount, counter = track.kind, track.amount, track.counter
        clock, place = track.clock, track.place
        while place < len(kind) and clock <= others:
            what = kind[place]
            if what == STEP:
                if alone:
                    clock = max(clock, engine)
                begun.append(clock)
                clock += amount[place]
                engine = clock
            elif what == SIGNAL:
                name = counter[place]
                counted[name] = counted.get(name, 0) + 1
                for other in tracks:
                    waits = other.waiting and other.counter[other.place] == name
                    if waits and counted[name] >= other.amount[other.place]:
                        other.waiting, other.place = False, other.place + 1
                        other.clock = max(other.clock, clock)
                        others = min(others, other.clock)
            elif counted.get(counter[place], 0) < amount[place]:
                track.waiting = True
                break
            place += 1
        track.clock, track.place = clock, place
    stuck = [n for n, track in enumerate(tracks) if track.place < len(track.kind)]
    if stuck:
        where = ", ".join(f"{names[n]} at {tracks[n].clock:g} us" for n in stuck)
        raise PlanError(f"deadlock: every track waits: {where}")
    return starts, max((track.clock for track in tracks), default=0.0)
