"""Refusals by ``verify`` of what comes when: streams, work in place, tracks and frames."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.plan.vocabulary import Lin, Loop, Move, Signal, Slice, Step, Wait, packed, whole
from tests.plan.agreement import refuse
from tests.plan.small import (
    Change,
    Subject,
    before,
    edited,
    fetched,
    halves,
    layer,
    like_x,
    looked_up,
    memory,
    moved,
    of_frame,
    on,
    scratch,
    side_by_side,
    step,
    step_of,
    streamed,
    two_frames,
)

X, COPY = Slice("x", (0,), (4,)), like_x("copy", 64)


def raced_stream() -> Subject:
    """Two tracks read one stream: which of them gets the first element?"""
    plan, graph = streamed()
    low, high = (Move(Slice("arriving", (n,), (2,)), Slice("x", (n,), (2,))) for n in (0, 2))
    return side_by_side(plan, (low, Wait("high", 1), USE), (high, Signal("high"))), graph


def on_tracks(*tracks: tuple[Step, ...], change: Change = lambda plan: plan) -> Subject:
    """Plan the layer with two more buffers like its input, in a memory of granules of 4 bytes."""
    plan, graph = layer()
    more = COPY, replace(COPY, name="far", memory="card")
    plan = edited(memory(granule_bytes=4)(plan), buffers=more)
    return side_by_side(change(plan), *tracks), graph


def of_fetched(change: Callable[..., tuple[tuple[Step, ...], ...]]) -> Subject:
    plan, graph = fetched()
    return side_by_side(plan, *change(*(track.steps for track in plan.tracks))), graph


USE = step_of(layer()[0])
LOW, HIGH = (
    tuple(Move(Slice("x", (n,), (2,)), Slice(to, (n,), (2,))) for to in ("copy", "far"))
    for n in (0, 2)
)
HALVES = halves()[0].tracks[0].steps
N, BACKWARDS = Lin(0, (("n", 1),)), ((3,), (2,), (1,), (0,))
AWAY, BACK = (Move(X, whole(COPY)), Signal("kept")), (Wait("kept", 1), Move(whole(COPY), X))

REFUSED: tuple[tuple[str, Callable[[], Subject]], ...] = (
    # streams, and in place
    ("out of order or twice", lambda: streamed(0, 0, 1, 2, 3)),
    ("out of order or twice", lambda: streamed(3, 2, 1, 0)),
    ("out of order or twice", lambda: streamed(0, 2, 3)),
    ("out of order or twice", lambda: streamed(0, 1, 2, 3, map=packed((4,), 8, 8))),
    (
        "out of order or twice",
        lambda: on(streamed(), step(ins=lambda ins: (Slice("arriving", (0,), (4,)), *ins[1:]))),
    ),
    (
        "out of order or twice",
        lambda: on(looked_up(14, order=BACKWARDS), moved("x", 0, memory="stream")),
    ),
    ("overwrites element 1 of x before", lambda: looked_up(18)),
    ("overwrites element 2 of x before", lambda: looked_up(18, unit=(2,))),
    ("overwrites element 0 of x before", lambda: looked_up(14, order=BACKWARDS)),
    # tracks
    ("deadlock: cpu at wait never", lambda: on(layer(), before(Wait("never", 1)))),
    (
        "deadlock: .*track1 at wait there",
        lambda: of_fetched(lambda io, cpu: (io, (Wait("there", 2), cpu[1]))),
    ),
    ("race in sram", lambda: of_fetched(lambda io, cpu: (io, (Wait("there", 0), cpu[1])))),
    ("race in sram", lambda: of_fetched(lambda io, cpu: (io, (Wait("there", -1), cpu[1])))),
    ("race in sram", lambda: of_fetched(lambda io, cpu: (io[::-1], cpu))),
    ("race in sram", lambda: of_fetched(lambda io, cpu: (io, cpu[::-1]))),
    ("there is signalled by two tracks", lambda: of_fetched(lambda io, cpu: (io, cpu, io[1:]))),
    ("race in sram", lambda: on_tracks((USE,), (USE,))),
    ("race in sram", lambda: on_tracks((USE, LOW[0]), (HIGH[0],))),
    ("race in card", lambda: on_tracks((USE, LOW[1]), (HIGH[1],))),
    ("race in sram", lambda: on_tracks((*AWAY, USE), BACK)),
    (
        "race in sram: .*track2",  # the last one has not waited, whoever else has
        lambda: on_tracks((USE, *AWAY), BACK, (Move(whole(COPY), replace(X, buffer="far")),)),
    ),
    ("race in stream", raced_stream),
    ("race in sram", lambda: on(halves(), lambda plan: side_by_side(plan, HALVES, HALVES[:1]))),
    (
        "race in sram",
        lambda: on_tracks(
            (replace(USE, scratch=("scratch",)),), AWAY[:1], change=step(scratch(66))
        ),
    ),
    # frames
    ("finds 8-bit element of x of frame 0 number 0", lambda: two_frames((0, 0, 0), (1, 0, 1))),
    ("finds 16-bit element of y of frame 1 number 0", lambda: two_frames((0, 0, 1), (1, 1, 0))),
    ("is of frame 2 of 2", lambda: two_frames((2, 0, 0))),
    ("is of frame -1 of 2", lambda: two_frames((-1, 1, 1))),
    ("the plan's end .*finds garbage", lambda: two_frames((0, 0, 0))),
    ("finds 16-bit element of y of frame 1 number 0", lambda: two_frames(copy_stride=2)),
    ("buffer y has 1 copies for 2 frames", lambda: two_frames(copies=1)),
    ("x has 2 copies for 3 frames", lambda: two_frames(frames=3)),
    (
        "is of frame 2 of 2",
        lambda: on(two_frames(), lambda plan: edited(plan, Loop("n", 3, (of_frame(N, N, N),)))),
    ),
)


@pytest.mark.parametrize(("said", "make"), REFUSED)
def test_what_comes_at_the_wrong_time_is_refused(said: str, make: Callable[[], Subject]) -> None:
    refuse(*make(), said)
