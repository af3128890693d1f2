"""Sound plans are accepted, run bit-exactly and survive the file; what is said of them is so."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import PlanError, Track, packed
from tests.comparing import equal
from tests.plan.fixtures import FIXTURES, herringbone, row_ring
from tests.plan.small import before, edited, halves, layer, scratch, step, step_of, two_frames
from tests.strategies.chains import board

SEEDS = range(3)
REPEATING = {"column_tiles"}
"""Plans whose tiles compute again what they share with those beside them."""


def frame_of(graph: Graph, rng: np.random.Generator) -> IntArray:
    tensor = graph.tensors[graph.input]
    return rng.integers(tensor.dtype.minimum, tensor.dtype.maximum + 1, tensor.shape)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FIXTURES)
def test_fixture_is_accepted_and_bit_exact(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan, graph = FIXTURES[name](rng)
    report = verify(plan, graph)
    assert (report.macs_executed > graph.macs) == bool(report.recomputed) == (name in REPEATING)
    for _ in range(5):
        frame = frame_of(graph, rng)
        wanted = graph.evaluate(frame[None])[0]
        for choose in (min, max):
            found = interpret(plan, graph, frame, choose)
            equal(found.output, wanted)
            assert found.high_water_bytes["sram"] <= cost(plan, graph, board()).arena_bytes


def test_what_nothing_touches_holds_nothing() -> None:
    plan, graph = layer()
    found = interpret(plan, graph, frame_of(graph, np.random.default_rng(0)))
    assert found.high_water_bytes["card"] == 0 < found.high_water_bytes["flash"]


def test_frames_are_counted_together_and_multiplied_each() -> None:
    plan, graph = two_frames()
    report = verify(plan, graph)
    assert report.computed == {"y": 6} and not report.recomputed
    assert report.macs_executed == graph.macs
    images = np.random.default_rng(1).integers(0, 256, (2, 4))
    equal(interpret(plan, graph, images).output, graph.evaluate(images))


def test_recomputation_and_parts_of_sums_are_counted() -> None:
    plan, graph = layer()
    report = verify(before(step_of(plan))(plan), graph)
    assert report.recomputed == {"y": 3} and report.macs_executed == 2 * graph.macs
    plan, graph = halves()  # whose parts count for what they multiply
    report = verify(plan, graph)
    assert report.macs_executed == graph.macs and report.computed == {"y": 3}


def test_a_damaged_address_does_not_ask_for_the_machines_memory() -> None:
    plan, _ = layer()
    with pytest.raises(PlanError, match="reach more than 2147483648 B: addresses are wrong"):
        roomy(edited(plan, buffers=(replace(plan.buffer["x"], map=packed((4,), 8, 10**12)),)))


def test_interpreter_loses_scratch_and_streams_on() -> None:
    """Carry out what the verifier rejects: overlapping scratch, and a stream read again."""
    rng = np.random.default_rng(0)
    plan, graph = herringbone(rng)
    frame = frame_of(graph, rng)
    noisy = step(scratch(2), scratch=("scratch",))(plan)
    assert not np.array_equal(interpret(noisy, graph, frame).output, graph.evaluate(frame[None])[0])
    plan, graph = row_ring(rng)
    frame = frame_of(graph, rng)
    steps = plan.tracks[0].steps
    again = replace(plan, tracks=(Track("cpu", (steps[0], steps[1], *steps[1:])),))
    with pytest.raises(
        PlanError, match="cannot be carried out"
    ):  # the stream is over before the plan is
        interpret(again, graph, frame)
