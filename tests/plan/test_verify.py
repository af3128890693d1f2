"""Sound plans are accepted, run bit-exactly and survive the file; what is said of them is so. Each
is proved once, and again once it was edited; facts known of boxes say the same as every cell."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box, IntArray
from pipeline.hardware import Memory
from pipeline.plan import proof, serialize
from pipeline.plan.cost import cost
from pipeline.plan.elements import Elements
from pipeline.plan.fit import of_board, roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.known import Known
from pipeline.plan.tokens import COMPLETE, Tokens
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Affine, Buffer, Track, packed
from pipeline.plan.zones import Zones
from tests.comparing import equal
from tests.plan.fixtures import FIXTURES, channel_partial, herringbone, row_ring
from tests.plan.small import before, edited, halves, layer, scratch, step, step_of, two_frames
from tests.strategies.chains import Ordinary, board, mnist

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
    with pytest.raises(PlanError, match="cannot be carried out"):
        interpret(again, graph, frame)  # the stream is over before the plan is


def test_what_changed_is_proved_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "verify", asked := Mock(wraps=verify))
    plan, graph = channel_partial(np.random.default_rng(0))
    path, found = tmp_path / "proof.json", proof.prove(plan, graph)
    proof.save(path, found, plan, graph)
    serialize.save(plan, tmp_path / "plan.json")
    assert proof.proved(path, serialize.load(tmp_path / "plan.json"), graph) == found
    assert asked.call_count == 1
    assert proof.proved(path, replace(plan, strategy="by hand, and again"), graph)
    assert proof.proved(path, plan, channel_partial(np.random.default_rng(1))[1])
    assert asked.call_count == 3
    wrong = replace(plan, tracks=tuple(replace(t, steps=t.steps * 2) for t in plan.tracks))
    with pytest.raises(PlanError):
        proof.proved(path, wrong, graph)


def test_memories_are_those_of_the_board_that_was_looked_at(tmp_path: Path) -> None:
    """A plan that says that flash can be written is right, on another board."""
    plan, graph = channel_partial(np.random.default_rng(0))
    path = tmp_path / "proof.json"
    proof.save(path, proof.prove(plan, graph), plan, graph)
    writable = tuple(replace(m, kind="ram") for m in plan.memories)
    with pytest.raises(PlanError, match="other memories than the plan: run stage schedule again"):
        proof.proved(path, replace(plan, memories=writable), graph)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"memories": 3}', "[" * 100_000])
def test_a_damaged_proof_is_one_line(content: str, tmp_path: Path) -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    path = tmp_path / "proof.json"
    path.write_text(content)
    with pytest.raises(ThimbleError):
        proof.proved(path, plan, graph)


def test_a_plan_keeps_to_the_boards_memories() -> None:
    graph, uno = mnist().graph(), board(streams=False)
    plan = Ordinary().plan(graph, uno)
    of_board(plan, uno)
    for changed in ({"kind": "rom"}, {"granule_bytes": 4}, {"name": "another"}):
        first = replace(plan.memories[0], **changed)  # type: ignore[arg-type]
        buffers = tuple(
            replace(b, memory=first.name) if b.memory == plan.memories[0].name else b
            for b in plan.buffers
        )
        other = replace(plan, memories=(first, *plan.memories[1:]), buffers=buffers)
        with pytest.raises(PlanError, match=f"the plan takes {first.name} for"):
            of_board(other, uno)


RAM = Memory("ram", "ram", 200)


def drawn_buffer(rng: np.random.Generator, name: str) -> Buffer:
    """Rows, in a ring or not, columns in one or not; most of them overlap others."""
    shape = tuple(int(n) for n in rng.integers(1, 7, 2))
    rings = tuple(int(rng.integers(1, n + 1)) if rng.random() < 0.5 else 0 for n in shape)
    bits = int(rng.choice([4, 8]))
    width = min(shape[1], rings[1] or shape[1]) * bits // 4
    place = Affine(2 * int(rng.integers(0, 100)), (width, bits // 4), rings)
    role = "accumulator" if rng.random() < 0.15 else "activation"
    copies = int(rng.integers(1, 3)) if role == "activation" else 1
    return Buffer(name, name[0], "ram", shape, bits, place, role, copies=copies, copy_stride=40)


def drawn_box(rng: np.random.Generator, buffer: Buffer) -> Box:
    """Most often no larger than the rings."""
    box = list[tuple[int, int]]()
    for extent, ring in zip(buffer.shape, buffer.wrap, strict=True):
        most = ring if ring and rng.random() < 0.95 else extent
        size = int(rng.integers((most + 1) // 2, most + 1))
        low = int(rng.integers(extent - size + 1))
        box.append((low, low + size))
    return tuple(box)


@pytest.mark.parametrize("seed", range(60))
def test_boxes_and_cells_say_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    buffers = [drawn_buffer(rng, f"{'abc'[n % 3]}{n}") for n in range(rng.integers(1, 4))]
    plan = SimpleNamespace(memories=(RAM,), buffers=buffers, frames=2)
    quick, slow = (Tokens(plan, Zones(plan), set()) for _ in "ab")  # type: ignore[arg-type]
    monkeypatch.setattr(slow.known, "put", lambda elements: False)
    known = 0
    for _ in range(100):
        buffer = buffers[rng.integers(len(buffers))]
        place = buffer.at(int(rng.integers(2)))
        some = Elements.of(place, drawn_box(rng, place), int(rng.random() < 0.1))
        kind = rng.random()
        if kind < 0.45:
            sums = COMPLETE if buffer.role == "activation" else rng.integers(0, 3, some.shape)
            assert quick.write(some, sums) == slow.write(some, sums)
        elif kind < 0.5:
            quick.destroy(some), slow.destroy(some)
        else:
            known += Known.holds(quick.known, some)
            assert outcome(quick, some) == outcome(slow, some)
    for buffer in buffers:
        every = Elements.of(buffer.at(0), buffer.box), Elements.of(buffer.at(1), buffer.box)
        assert [quick.empty(each) for each in every] == [slow.empty(each) for each in every]
        assert [outcome(quick, each) for each in every] == [outcome(slow, each) for each in every]
    assert known or seed


def outcome(tokens: Tokens, elements: Elements) -> object:
    """Return what a check finds, or says."""
    try:
        found = tokens.check(elements, lambda: "step")
    except PlanError as error:
        return str(error)
    return found if isinstance(found, int) else found.tolist()
