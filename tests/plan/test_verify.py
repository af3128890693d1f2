"""Sound plans are accepted and run bit-exactly; each kind of mistake is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.plan import serialize
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Compute,
    Plan,
    PlanError,
    Step,
    Table,
    Track,
    packed,
    whole,
)
from tests.comparing import equal
from tests.plan.broken import BROKEN, Change, edited, rebuffered
from tests.plan.fixtures import FIXTURES, channel_partial, double_buffer, herringbone, row_ring

SEEDS = range(3)


def frame_of(graph: Graph, rng: np.random.Generator) -> IntArray:
    tensor = graph.tensors[graph.input]
    return rng.integers(tensor.dtype.minimum, tensor.dtype.maximum + 1, tensor.shape)


REPEATING = {"column_tiles"}
"""What tiles beside each other share is computed again."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FIXTURES)
def test_fixture_is_accepted_and_bit_exact(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan, graph = FIXTURES[name](rng)
    report = verify(plan, graph)
    assert (report.macs_executed > graph.macs) == bool(report.recomputed) == (name in REPEATING)
    for _ in range(5):
        frame = frame_of(graph, rng)
        wanted = graph.outputs(frame[None])[0]
        for choose in (min, max):
            equal(interpret(plan, graph, frame, choose).output, wanted)


@pytest.mark.parametrize("name", FIXTURES)
def test_plan_survives_serialization(name: str, tmp_path) -> None:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    serialize.save(plan, tmp_path / "plan.json")
    loaded = serialize.load(tmp_path / "plan.json")
    assert loaded == plan and serialize.plan_hash(loaded) == serialize.plan_hash(plan)
    verify(loaded, graph)


def rejects(plan: Plan, graph: Graph, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        verify(plan, graph)


@pytest.mark.parametrize(("name", "broken", "_", "said"), BROKEN)
def test_each_mistake_is_named(name: str, broken: Change, _: str, said: str) -> None:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    rejects(broken(plan), graph, said)


def test_order_must_name_every_unit_once() -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    rejects(edited(plan, lambda s: replace(s, order=s.order[:-1])), graph, "order names 15 of 16")


def test_accumulators_are_not_activations() -> None:
    plan, _ = row_ring(np.random.default_rng(0))
    with pytest.raises(PlanError, match="accumulator buffer acc is resident or the output"):
        replace(plan, output="acc")


def test_constants_are_safe_from_activations() -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    moved = replace(plan.buffer["y.bias"], memory="sram", map=packed((3,), 8, 70))
    buffers = tuple(moved if b.name == "y.bias" else b for b in plan.buffers)
    rejects(replace(plan, buffers=buffers), graph, "resident buffer y.bias overlaps|finds")


def test_recomputation_is_counted() -> None:
    plan, graph = double_buffer(np.random.default_rng(0), tiles=1)
    memories = tuple(replace(m, kind="rom") if m.kind == "block" else m for m in plan.memories)
    plan, y = replace(plan, memories=memories), plan.buffer["y"]
    weights, bias = plan.buffer["y.weight"], plan.buffer["y.bias"]
    step = Compute("y", whole(y), (whole(plan.buffer["x"]), whole(weights), whole(bias)))
    report = verify(replace(plan, tracks=(Track("cpu", (step, step)),)), graph)
    assert report.recomputed == {"y": 2} and report.macs_executed == 2 * graph.macs


@pytest.mark.parametrize("name", ["channel_partial", "row_ring"])
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_accumulators_must_hold_every_sum(name: str, bits: int) -> None:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    rejects(rebuffered(plan, "acc", bits=bits), graph, f"do not fit acc's {bits} bits")


def test_order_names_origins_of_units() -> None:
    plan, graph = herringbone(np.random.default_rng(0))

    def shifted(step: Step) -> Step:
        assert isinstance(step, Compute)
        return replace(step, unit=(2, 1, 3), order=tuple((r + 1, c, 0) for r, c, _ in step.order))

    rejects(edited(plan, shifted), graph, "names 16 of 8 units")
    with pytest.raises(PlanError, match="units of"):
        edited(plan, lambda s: replace(s, unit=(0, 1, 3)))


def test_two_tracks_that_read_a_stream_race() -> None:
    plan, graph = row_ring(np.random.default_rng(0))
    clear, first, *rest = plan.tracks[0].steps
    tracks = (Track("a", (first,)), Track("b", (clear, *rest)))
    rejects(replace(plan, tracks=tracks), graph, "race|out of order")


def test_constants_outlive_the_frame() -> None:
    """The next frame needs them again: the output may not be written over them, even at the end."""
    plan, graph = channel_partial(np.random.default_rng(0))
    bias = replace(plan.buffer["y.bias"], memory="sram", map=packed((3,), 8, 400))
    weight = replace(plan.buffer["h.bias"], memory="sram", map=packed((6,), 8, 408))
    moved = {"y.bias": bias, "h.bias": weight}
    plan = replace(plan, buffers=tuple(moved.get(b.name, b) for b in plan.buffers))
    verify(plan, graph)
    rejects(rebuffered(plan, "y", map=packed((3, 3, 3), 8, 408)), graph, "next frame needs")


def test_a_map_must_have_its_buffers_shape() -> None:
    plan, _ = herringbone(np.random.default_rng(0))
    table = plan.buffer["y"].map
    assert isinstance(table, Table)
    wrong = {"y": {"map": Table(table.cells[:-1])}, "x": {"map": Affine(0, (1, 2))}}
    for name, change in wrong.items():
        with pytest.raises(PlanError, match=f"map of buffer {name} is not of its shape"):
            replace(plan.buffer[name], **change)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="elements of 3 bits"):
        replace(plan.buffer["x"], bits=3)
    with pytest.raises(PlanError, match="buffer x is empty"):
        replace(plan.buffer["x"], shape=(6, 0, 2))


def test_a_damaged_address_does_not_ask_for_the_machines_memory() -> None:
    plan, _ = herringbone(np.random.default_rng(0))
    with pytest.raises(PlanError, match="reach more than 2147483648 B: addresses are wrong"):
        roomy(rebuffered(plan, "x", map=packed((6, 6, 2), 4, 10**12)))


def test_interpreter_loses_scratch_and_streams_on() -> None:
    """What the verifier rejects does go wrong: overlapping scratch, and a stream read again."""
    rng = np.random.default_rng(0)
    plan, graph = herringbone(rng)
    frame = frame_of(graph, rng)
    scratch = Buffer("scratch", "", "sram", (8,), 8, packed((8,), 8, 4), "scratch")
    noisy = edited(
        replace(plan, buffers=(*plan.buffers, scratch)),
        lambda s: replace(s, scratch=("scratch",)),
    )
    assert not np.array_equal(interpret(noisy, graph, frame).output, graph.outputs(frame[None])[0])
    plan, graph = row_ring(rng)
    frame = frame_of(graph, rng)
    steps = plan.tracks[0].steps
    again = replace(plan, tracks=(Track("cpu", (steps[0], steps[1], *steps[1:])),))
    with pytest.raises(
        PlanError, match="cannot be carried out"
    ):  # the stream is over before the plan is
        interpret(again, graph, frame)
