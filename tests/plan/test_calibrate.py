"""Rounded accumulators: how their step is chosen, what they compute, and what refuses them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.placement.constants import constants
from pipeline.plan.calibrate import calibrated, needs_calibration, rounds
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import (
    Buffer,
    Clear,
    Compute,
    Finish,
    Lin,
    Loop,
    Plan,
    PlanError,
    Slice,
    Track,
    packed,
    whole,
)
from tests.comparing import equal
from tests.strategies.nets import Net
from tests.strategies.test_ordinary import BOARD

CHANNELS = 6


def network() -> Graph:
    net = Net((2, 2, CHANNELS))
    net.conv("input", 3)
    return net.graph()


def two_at_once(graph: Graph, bits: int, step: int) -> Plan:
    """The convolution as three contributions of two channels each."""
    source, target = graph.tensors["input"], graph.tensors[graph.output]
    image = Buffer("input", "input", "sram", source.shape, 8, packed(source.shape, 8))
    sums = Buffer("sums", target.name, "sram", target.shape, bits,
                  packed(target.shape, bits, 400), "accumulator", step)  # fmt: skip
    out = Buffer("out", target.name, "sram", target.shape, 8, packed(target.shape, 8, 200))
    fixed = constants(graph, BOARD, 0)
    weights, bias = (b for b in fixed)
    (op,) = graph.operators
    two = Lin(0, (("c", 2),))
    add = Compute(
        op.name,
        whole(sums),
        (Slice("input", (0, 0, two), (2, 2, 2)), Slice(weights.name, (0, 0, 0, two), (3, 1, 1, 2))),
        partial=True,
    )
    steps = (
        Clear(op.name, whole(sums)),
        Loop("c", CHANNELS // 2, (add,)),
        Finish(op.name, whole(sums), whole(out), (whole(bias),)),
    )
    resident = ("input", *(buffer.name for buffer in fixed))
    return Plan(graph.name, "test", BOARD.memories, (image, sums, out, *fixed),
                (Track("cpu", steps),), resident, "out")  # fmt: skip


def frame(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, (2, 2, CHANNELS))


def prefix_sums(graph: Graph, image: np.ndarray) -> np.ndarray:
    """(3, 2, 2, 3): after two, four and six channels."""
    weights = graph.constants[graph.operators[0].parameters[0]][:, 0, 0]
    parts = [image[..., c : c + 2] @ weights[:, c : c + 2].T for c in range(0, CHANNELS, 2)]
    return np.cumsum(parts, axis=0)


def test_the_step_is_the_smallest_with_which_nothing_saturates() -> None:
    graph, images = network(), [frame(seed) for seed in range(4)]
    largest = max(int(np.abs(prefix_sums(graph, image)).max()) for image in images)
    for bits in (8, 16):
        plan = calibrated(two_at_once(graph, bits, 0), graph, images)
        (step,) = (b.step for b in plan.buffers if b.role == "accumulator")
        limit = 2 ** (bits - 1) - 1
        assert step == max(2, -(-largest // limit))
        assert rounds(plan) and not needs_calibration(plan)
        verify(plan, graph)


def test_what_is_computed_word_for_word() -> None:
    graph, image, step = network(), frame(7), 150
    plan = two_at_once(graph, 8, step)
    held = np.zeros((2, 2, 3), np.int64)
    before = 0
    for total in prefix_sums(graph, image):
        added, before = total - before, total
        held = np.clip(held + np.sign(added) * ((np.abs(added) + step // 2) // step), -128, 127)
    (op,) = graph.operators
    bias = {op.parameters[1]: graph.constant(op.parameters[1])}
    expected = op.finish(graph.tensors, graph.tensors[op.output].box, held[None] * step, bias)[0]
    equal(interpret(plan, graph, image).output, expected)


def test_finer_steps_are_nearer_until_they_saturate() -> None:
    graph, image = network(), frame(2)
    exact = graph.outputs(image[None])[0]

    def far(step: int) -> int:
        found = interpret(two_at_once(graph, 8, step), graph, image).output
        return int(np.abs(found - exact).sum())

    largest = int(np.abs(prefix_sums(graph, image)).max())
    right = -(-largest // 127)
    assert far(right) < far(8 * right) and far(right) < far(max(2, right // 8))


def test_an_open_step_is_no_plan_yet() -> None:
    graph = network()
    plan = two_at_once(graph, 16, 0)
    assert needs_calibration(plan)
    with pytest.raises(PlanError, match="the step of sums is not chosen"):
        verify(plan, graph)
    with pytest.raises(ThimbleError, match="there are none"):
        calibrated(plan, graph, [])


def test_a_plan_that_does_not_fit_is_calibrated() -> None:
    """It is still a plan, and what it needs is the answer."""
    graph = network()
    plan = two_at_once(graph, 8, 0)
    small = replace(plan, memories=tuple(replace(m, bytes=16) for m in plan.memories))
    found = calibrated(small, graph, [frame()])
    assert found == replace(calibrated(plan, graph, [frame()]), memories=small.memories)


def test_plans_without_open_steps_stay_as_they_are() -> None:
    graph = network()
    plan = two_at_once(graph, 32, 1)
    assert calibrated(plan, graph, []) is plan and not rounds(plan)
