"""Rounded accumulators: how their step is chosen, what they compute, and what refuses them."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.calibrate import calibrated, needs_calibration, rounds
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from tests.comparing import equal
from tests.plan.small import halves, layer, sums

GRAPH = layer()[1]


def two_at_once(bits: int, step: int) -> Plan:
    """The layer as two contributions of two inputs each."""
    return halves(sums("sums", bits, step=step))[0]


def frame(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, 4)


def prefix_sums(graph: Graph, image: np.ndarray) -> np.ndarray:
    """(2, 3): after two and four inputs."""
    products = graph.constants["y.weight"] * image
    return np.cumsum([products[:, :2].sum(axis=1), products[:, 2:].sum(axis=1)], axis=0)


def test_the_step_is_the_smallest_with_which_nothing_saturates() -> None:
    images = [frame(seed) for seed in range(4)]
    largest = max(int(np.abs(prefix_sums(GRAPH, image)).max()) for image in images)
    for bits in (8, 16):
        plan = calibrated(two_at_once(bits, 0), GRAPH, images)
        (step,) = (b.step for b in plan.buffers if b.role == "accumulator")
        limit = 2 ** (bits - 1) - 1
        assert step == max(2, -(-largest // limit))
        assert rounds(plan) and not needs_calibration(plan)
        verify(plan, GRAPH)


@pytest.mark.parametrize("step", [150, 900])
def test_what_is_computed_word_for_word(step: int) -> None:
    """Rounded half away from zero, and saturated."""
    image = frame(7)
    held, before = np.zeros(3, np.int64), 0
    for total in prefix_sums(GRAPH, image):
        added, before = total - before, total
        held = np.clip(held + np.sign(added) * ((np.abs(added) + step // 2) // step), -128, 127)
    (op,) = GRAPH.operators
    bias = {op.parameters[1]: GRAPH.constant(op.parameters[1])}
    expected = op.finish(GRAPH.tensors, GRAPH.tensors["y"].box, held[None] * step, bias)[0]
    equal(interpret(two_at_once(8, step), GRAPH, image).output, expected)


def test_finer_steps_are_nearer_until_they_saturate() -> None:
    image = frame(2)
    exact = GRAPH.evaluate(image[None])[0]

    def far(step: int) -> int:
        found = interpret(two_at_once(8, step), GRAPH, image).output
        return int(np.abs(found - exact).sum())

    largest = int(np.abs(prefix_sums(GRAPH, image)).max())
    right = -(-largest // 127)
    assert far(right) < far(8 * right) and far(right) < far(max(2, right // 8))


def test_an_open_step_needs_images_and_other_plans_stay_as_they_are() -> None:
    plan = two_at_once(16, 0)
    assert needs_calibration(plan)
    with pytest.raises(ThimbleError, match="there are none"):
        calibrated(plan, GRAPH, [])
    plan = two_at_once(32, 1)
    assert calibrated(plan, GRAPH, []) is plan and not rounds(plan)


def test_a_plan_that_does_not_fit_is_calibrated() -> None:
    """It is still a plan, and what it needs is the answer."""
    plan = two_at_once(8, 0)
    small = replace(plan, memories=tuple(replace(m, bytes=16) for m in plan.memories))
    found = calibrated(small, GRAPH, [frame()])
    assert found == replace(calibrated(plan, GRAPH, [frame()]), memories=small.memories)
