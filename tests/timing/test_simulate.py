"""The simulator on plans computed by hand, and against the longest path through random ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pipeline.plan.unrolled import unroll
from pipeline.plan.vocabulary import (
    Compute,
    Move,
    Plan,
    PlanError,
    Signal,
    Slice,
    Step,
    Track,
    Wait,
    value,
)
from pipeline.timing.simulate import Timeline, simulate
from pipeline.timing.states import states
from tests.comparing import equal
from tests.timing.toys import ROWS, rows, slow, swapped


def times(plan: Plan, timeline: Timeline, track: str) -> list[tuple[float, float]]:
    """(start, stop) of the steps of a track."""
    number = [each.name for each in plan.tracks].index(track)
    chosen = timeline.track == number
    pairs = zip(timeline.start[chosen].tolist(), timeline.stop[chosen].tolist(), strict=True)
    return list(pairs)


def test_one_buffer_alternates() -> None:
    """A row is 2 B in, 2 MACs, 2 B out: with one buffer a side, in waits for computing, computing
    for out: in 0-2, computed 2-4, then in and out side by side 4-6, computed 6-8, …"""
    graph = rows()
    plan = swapped(graph, 1)
    timeline = simulate(plan, graph, slow())
    assert times(plan, timeline, "io") == [(4.0 * n, 4.0 * n + 2) for n in range(ROWS)]
    assert times(plan, timeline, "cpu") == [(4.0 * n + 2, 4.0 * n + 4) for n in range(ROWS)]
    assert times(plan, timeline, "back") == [(4.0 * n + 4, 4.0 * n + 6) for n in range(ROWS)]
    assert timeline.makespan_us == 4 * ROWS + 2


def test_two_buffers_hide_what_can_be_hidden() -> None:
    """Computing takes 6 us a row, in 2, out 6: only the first in and the last out are seen."""
    graph = rows(channels=3)
    plan = swapped(graph, 2)
    timeline = simulate(plan, graph, slow())
    assert timeline.makespan_us == 2 + 6 * ROWS + 6
    assert times(plan, timeline, "io")[:4] == [(0, 2), (2, 4), (8, 10), (14, 16)]


def test_states_are_apart_and_add_up() -> None:
    graph = rows()
    found = states(simulate(swapped(graph, 1), graph, slow()))
    assert (found.compute_us, found.both_us, found.idle_us) == (2 * ROWS, 0, 0)
    assert found.io_us == 2 * ROWS + 2 and found.both_us == 0
    assert found.read_us == found.write_us == 2 * ROWS
    hidden = states(simulate(swapped(graph, 2), graph, slow()))
    assert hidden.both_us > 0 and hidden.core_us == 2 * ROWS
    assert sum((hidden.compute_us, hidden.io_us, hidden.both_us, hidden.idle_us)) == 2 * ROWS + 4


def test_without_dma_one_thing_at_a_time() -> None:
    graph = rows()
    for buffers in (1, 2, 4):
        timeline = simulate(swapped(graph, buffers), graph, slow(dma=False))
        assert timeline.makespan_us == 6 * ROWS
        assert states(timeline, dma=False).core_us == 6 * ROWS
        order = np.argsort(timeline.start, kind="stable")
        assert (timeline.start[order][1:] >= timeline.stop[order][:-1]).all()


def test_counted_calls_replace_the_rate() -> None:
    graph = rows()
    (op,) = graph.operators
    timeline = simulate(swapped(graph, 2), graph, slow(), {op.name: np.full(ROWS, 5.0)})
    assert timeline.makespan_us == 2 + 5 * ROWS + 2


def test_a_deadlock_is_said() -> None:
    graph = rows()
    plan = swapped(graph, 1)
    never = Track("extra", (Wait("computed", ROWS + 1), Signal("extra")))
    with pytest.raises(PlanError, match="deadlock: every track waits: extra at"):
        simulate(replace(plan, tracks=(*plan.tracks, never)), graph, slow())


def test_the_same_again_and_whatever_the_order_of_equals() -> None:
    graph = rows(3, 2)
    plan = swapped(graph, 2)
    once, again = (simulate(plan, graph, slow()) for _ in range(2))
    equal(once.start, again.start)
    turned = simulate(replace(plan, tracks=plan.tracks[::-1]), graph, slow())
    assert sorted(turned.start.tolist()) == sorted(once.start.tolist())


def shuffled(plan: Plan, rng: np.random.Generator) -> Plan:
    """The plan's steps in one random order that is possible, dealt to random tracks; each waits for
    some that come before it. So it never deadlocks."""
    found = [step for track in plan.tracks for step in track.steps]
    every = [step for step in found if isinstance(step, Compute | Move)]
    every = [every[n] for n in rng.integers(0, len(every), int(rng.integers(3, 25)))]
    count = int(rng.integers(2, 5))
    tracks: list[list[Step]] = [[] for _ in range(count)]
    done = [0] * count
    for step in every:
        mine = int(rng.integers(count))
        for other in range(count):
            if rng.random() < 0.5:
                tracks[mine].append(Wait(f"c{other}", int(rng.integers(0, done[other] + 1))))
        tracks[mine] += [step, Signal(f"c{mine}")]
        done[mine] += 1
    return replace(
        plan, tracks=tuple(Track(f"t{n}", tuple(steps)) for n, steps in enumerate(tracks))
    )


def longest_path(plan: Plan) -> float:
    """By repeated relaxation, without events."""
    ends: dict[str, list[float]] = {}
    for _ in range(sum(len(track.steps) for track in plan.tracks)):
        before = {name: list(each) for name, each in ends.items()}
        last = 0.0
        ends = {}
        for track in plan.tracks:
            clock = 0.0
            for step in track.steps:
                if isinstance(step, Wait):
                    needed = before.get(step.counter, [])[: value(step.at_least, {})]
                    clock = max([clock, *needed])
                elif isinstance(step, Signal):
                    ends.setdefault(step.counter, []).append(clock)
                else:
                    clock += length(step)
            last = max(last, clock)
        if ends == before:
            break
    return last


def straight(plan: Plan) -> Plan:
    """Without loops: each step as it is in one round."""

    def here(piece: Slice, env: dict[str, int]) -> Slice:
        return replace(piece, lo=tuple(value(low, env) for low in piece.lo))

    def fixed(step: Step, env: dict[str, int]) -> Step:
        match step:
            case Move(src=src, dst=dst):
                return replace(step, src=here(src, env), dst=here(dst, env))
            case Compute(out=out, ins=ins):
                return replace(step, out=here(out, env), ins=tuple(here(i, env) for i in ins))
            case Wait(at_least=level):
                return replace(step, at_least=value(level, env))
        return step

    tracks = [
        Track(track.name, tuple(fixed(step, env) for step, env in unroll(track.steps, {})))
        for track in plan.tracks
    ]
    return replace(plan, tracks=tuple(tracks))


def length(step: Step) -> float:
    """By hand, for ``rows(3, 2)``: 3 B in, 6 MACs, 6 B out."""
    return 3.0 if isinstance(step, Move) and step.src.buffer == "image" else 6.0


def test_hundreds_of_random_plans_end_and_take_the_longest_path() -> None:
    graph = rows(3, 2)
    plan, hardware = straight(swapped(graph, 2)), slow()
    rng = np.random.default_rng(0)
    for _ in range(300):
        drawn = shuffled(plan, rng)
        timeline = simulate(drawn, graph, hardware)
        assert timeline.makespan_us == longest_path(drawn)
        busy: Counter[int] = Counter()
        for track, took in zip(timeline.track, timeline.stop - timeline.start, strict=True):
            busy[int(track)] += took
        found = states(timeline)
        assert timeline.makespan_us >= max(busy.values())
        assert timeline.makespan_us == pytest.approx(
            found.compute_us + found.io_us + found.both_us + found.idle_us
        )
