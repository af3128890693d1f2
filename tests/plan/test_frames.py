"""Several frames in flight: tokens carry the frame, buffers come in copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.plan import serialize
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import (
    Buffer,
    Compute,
    Lin,
    Loop,
    Move,
    Plan,
    PlanError,
    Signal,
    Slice,
    Step,
    Track,
    Wait,
    packed,
)
from tests.comparing import equal
from tests.strategies.swap.nets import Chain, board

FRAMES = 5
GRAPH_SHAPE = (2, 2, 3)


def graph():  # type: ignore[no-untyped-def]
    chain = Chain("net", GRAPH_SHAPE)
    chain.conv(4, 1)
    return chain.graph(np.random.default_rng(0))


def at(**factors: int) -> Lin:
    return Lin(0, tuple(factors.items()))


def plan(copies: int = 2, ahead: int = 2) -> Plan:
    """Input and output on the card, a copy a frame; SRAM has two copies of each, so that the next
    frame arrives while one is computed. ``ahead``: how many frames the card may be ahead."""
    net = graph()
    image, out = (net.tensors[name] for name in ("input", "conv2d0"))
    weight, bias = net.operators[0].parameters
    size, made = 2 * image.size, 2 * out.size
    near, far = 1024, 4096
    buffers = (
        Buffer("input", "input", "card", image.shape, 8, packed(image.shape, 8), copies=FRAMES,
               copy_stride=size),
        Buffer("out", out.name, "card", out.shape, 8, packed(out.shape, 8, far), copies=FRAMES,
               copy_stride=made),
        Buffer("x", "input", "sram", image.shape, 8, packed(image.shape, 8), copies=copies,
               copy_stride=size),
        Buffer("y", out.name, "sram", out.shape, 8, packed(out.shape, 8, near), copies=copies,
               copy_stride=made),
        *(Buffer(name, name, "flash", net.tensors[name].shape, net.tensors[name].dtype.bits,
                 packed(net.tensors[name].shape, net.tensors[name].dtype.bits, base), "constant")
          for name, base in ((weight, 0), (bias, 256))),
    )  # fmt: skip

    def whole(name: str, shape: tuple[int, ...], copy: Lin | int = 0) -> Slice:
        return Slice(name, (0,) * len(shape), shape, copy)

    f = at(f=1)
    inside, outside = whole("x", image.shape, f), whole("y", out.shape, f)
    compute = Compute(
        "conv2d0", outside,
        (inside, whole(weight, net.tensors[weight].shape), whole(bias, net.tensors[bias].shape)),
        frame=f,
    )  # fmt: skip
    cpu: tuple[Step, ...] = (Wait("arrived", Lin(1, (("f", 1),))), compute, Signal("computed"))
    load: tuple[Step, ...] = (
        Wait("computed", Lin(1 - ahead, (("f", 1),))),
        Move(whole("input", image.shape, f), inside, f),
        Signal("arrived"),
    )
    store: tuple[Step, ...] = (
        Wait("computed", Lin(1, (("f", 1),))),
        Move(outside, whole("out", out.shape, f), f),
        Signal("stored"),
    )
    free = (Wait("stored", Lin(1 - copies, (("f", 1),))), *cpu)
    tracks = (
        Track("cpu", (Loop("f", FRAMES, free),)),
        Track("in", (Loop("f", FRAMES, load),)),
        Track("out", (Loop("f", FRAMES, store),)),
    )
    memories = tuple(
        replace(memory, granule_bytes=1, kind="ram" if memory.kind == "block" else memory.kind)
        for memory in board(1 << 13).memories
    )
    return Plan("net", "test", memories, buffers, tracks, ("input", weight, bias), "out",
                frames=FRAMES)  # fmt: skip


def edited(found: Plan, track: str, number: int, step: Step) -> Plan:
    """With step ``number`` of the loop of a track replaced."""
    tracks = []
    for each in found.tracks:
        (loop,) = each.steps
        assert isinstance(loop, Loop)
        if each.name == track:
            body = (*loop.body[:number], step, *loop.body[number + 1 :])
            each = replace(each, steps=(replace(loop, body=body),))
        tracks.append(each)
    return replace(found, tracks=tuple(tracks))


def test_frames_in_flight_are_proved_and_computed() -> None:
    net, found = graph(), plan()
    report = verify(found, net)
    assert report.computed == {"conv2d0": FRAMES * 16} and not report.recomputed
    assert report.macs_executed == net.macs
    images = np.random.default_rng(1).integers(-128, 128, (FRAMES, *GRAPH_SHAPE))
    expected = net.run(images)["conv2d0"]
    rng = np.random.default_rng(2)
    for _ in range(5):  # any interleaving
        result = interpret(found, net, images, lambda ready: int(rng.choice(ready)))
        equal(result.output, expected)


def test_a_frame_that_overwrites_the_one_in_use_is_a_race() -> None:
    with pytest.raises(PlanError, match="race"):
        verify(plan(copies=2, ahead=3), graph())
    with pytest.raises(PlanError, match="race"):
        verify(plan(copies=1, ahead=2), graph())


def other_copy(compute: Any) -> Any:
    return replace(
        compute, ins=(replace(compute.ins[0], copy=Lin(1, (("f", 1),))), *compute.ins[1:])
    )


@pytest.mark.parametrize(
    ("track", "number", "change", "said"),
    [
        ("cpu", 2, lambda compute: replace(compute, frame=0), "of frame 0 .*finds .* of frame 1"),
        ("cpu", 2, other_copy, r"needs .*input|race"),
        (
            "out",
            1,
            lambda move: replace(move, dst=replace(move.dst, copy=0)),
            "the plan's end needs",
        ),
        ("in", 1, lambda move: replace(move, frame=Lin(5, (("f", 1),))), "is of frame 5 of 5"),
    ],
    ids=["another frame's data", "another copy", "an output lacks a frame", "not in flight"],
)
def test_frames_are_kept_apart(
    track: str, number: int, change: Callable[[Any], Any], said: str
) -> None:
    found = plan()
    (loop,) = next(each for each in found.tracks if each.name == track).steps
    assert isinstance(loop, Loop)
    with pytest.raises(PlanError, match=said):
        verify(edited(found, track, number, change(loop.body[number])), graph())


def test_the_input_needs_a_copy_for_each_frame() -> None:
    found = plan()
    buffers = (replace(found.buffers[0], copies=2), *found.buffers[1:])
    with pytest.raises(PlanError, match="buffer input has 2 copies for 5 frames"):
        verify(replace(found, buffers=buffers), graph())


def test_constants_have_no_copies() -> None:
    with pytest.raises(PlanError, match="role constant has 2 copies"):
        Buffer("w", "w", "flash", (4,), 8, packed((4,), 8), "constant", copies=2, copy_stride=8)


def test_copies_count_for_the_memory() -> None:
    buffer = Buffer("x", "x", "sram", (4,), 8, packed((4,), 8, 10), copies=3, copy_stride=20)
    assert buffer.extent == (10, 58)
    assert buffer.at(4).extent == (30, 38) and buffer.at(4) is buffer.at(1)


def test_frames_and_copies_survive_the_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = plan()
    serialize.save(found, tmp_path / "plan.json")
    assert serialize.load(tmp_path / "plan.json") == found
