"""Plans of two tracks as C: byte for byte what the graph computes, and not without waiting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.card import tracks
from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.kernels import Part
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Finish, Loop, Plan, Signal, Step, Wait
from pipeline.search.swap.best import Aim
from pipeline.search.swap.layers import layers
from pipeline.strategies.swap import searched
from tests.codegen.card.support import planned, sources, swapped
from tests.codegen.int8.support import DEVICE, Native, frames
from tests.comparing import equal
from tests.schedules.test_swapped import network, row_by_row
from tests.strategies.swap import test_resident as resident
from tests.strategies.swap.nets import Chain, alexnet, mobilenet, random_chain, vgg16
from tests.strategies.swap.test_best import by_tile
from tests.tiers import quick

SEEDS = (0, 3, 4, 9, 11, 12, 15)


def elements(graph: Graph) -> int:
    return sum(tensor.size for tensor in graph.tensors.values())


def same(program: Native, count: int = 3) -> bool:
    given = frames(program.graph, count)
    status, found = program.run(given)
    assert status == 0, status
    equal(found, program.graph.outputs(given), **program.about)
    return True


@pytest.mark.parametrize("seed", quick((9,), SEEDS, ci=3))
def test_computes_what_the_graph_does_when_it_is_searched(tmp_path: Path, seed: int) -> None:
    graph = random_chain(seed)
    plan = planned(graph, elements(graph) // 4)
    verify(plan, graph)
    assert same(swapped(tmp_path, graph, plan))


@pytest.mark.parametrize("seed", quick((3,), SEEDS, ci=3))
def test_computes_what_the_graph_does_in_square_tiles(tmp_path: Path, seed: int) -> None:
    graph = random_chain(seed)
    total = elements(graph)
    plan = planned(graph, total, scheduler="swapnn", buffer_bytes=max(200, total // 20))
    assert same(swapped(tmp_path, graph, plan))


@pytest.mark.ci
def test_channels_of_a_tile_go_through_several_layers(tmp_path: Path) -> None:
    graph = by_tile()
    assert same(swapped(tmp_path, graph, planned(graph, 2400)))


@pytest.mark.ci
def test_weights_that_stay_in_flash(tmp_path: Path) -> None:
    graph = resident.network()
    plan = searched("joint", graph, resident.small(9_000, 0), 1, Aim(flash_bytes=4_000))
    assert int(dict(plan.notes)["weights_in_flash_bytes"])
    assert same(swapped(tmp_path, graph, plan))


def in_parts() -> tuple[Graph, Plan]:
    """Input tiles are parts of the channels, so that sums are kept; weights lie in a ring whose
    last axis goes round."""
    chain = Chain("net", (3, 3, 30))
    chain.conv(5, 3, 1, 1)
    graph = chain.graph(np.random.default_rng(2))
    return graph, planned(graph, 1 << 14, scheduler="swapnn", buffer_bytes=200)


@pytest.mark.ci
def test_sums_over_input_channels_are_kept_between_tiles(tmp_path: Path) -> None:
    graph, plan = in_parts()
    kinds = {type(step).__name__ for step in tracks.inside(plan.tracks[0].steps)}
    assert {"Clear", "Finish", "Compute"} <= kinds
    assert same(swapped(tmp_path, graph, plan))


def around(kind: str) -> Graph:
    """Tiles of channels whose sums go around the end of their window."""
    chain = Chain("net", (2, 2, 60) if kind == "conv" else (1, 1, 60))
    chain.conv(13, 1) if kind == "conv" else chain.dense(37)
    return chain.graph(np.random.default_rng(1))


@pytest.mark.parametrize("kind", quick(1, ["conv", "dense"]))
def test_channels_go_around_the_end_of_a_window(tmp_path: Path, kind: str) -> None:
    graph = around(kind)
    plan = planned(graph, 1 << 14, scheduler="swapnn", buffer_bytes=100)
    sums = [step.acc for step in tracks.inside(plan.tracks[0].steps) if isinstance(step, Finish)]
    assert any(Part.of(piece, plan.buffer[piece.buffer]).around[-1] for piece in sums)
    assert same(swapped(tmp_path, graph, plan))


def test_the_same_as_the_interpreter_row_by_row(tmp_path: Path) -> None:
    graph = network(np.random.default_rng(0))
    plan = row_by_row(graph)
    given = frames(graph, 4)
    status, found = swapped(tmp_path, graph, plan).run(given)
    expected = [interpret(plan, graph, frame).output for frame in given]
    assert status == 0
    equal(found, expected)


def without_waits(steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
    """``steps`` whose wait number ``number`` is left out, in all turns of its loop."""
    found, seen = list[Step](), 0
    for step in steps:
        if isinstance(step, Loop):
            inner = sum(isinstance(s, Wait) for s in tracks.inside(step.body))
            step = replace(step, body=without_waits(step.body, number - seen))
            seen += inner
        elif isinstance(step, Wait):
            seen += 1
            if seen - 1 == number:
                continue
        found.append(step)
    return tuple(found)


@pytest.mark.parametrize("track", quick(1, [0, 1]))
def test_without_waiting_there_is_another_answer(tmp_path: Path, track: int) -> None:
    """Bytes arrive late, and their place is poison until then. Rows are of whole blocks, which
    go straight to where they belong."""
    chain = Chain("net", (9, 16, 32))
    chain.conv(32, 3, 1, 1)
    graph = chain.graph(np.random.default_rng(0))
    plan = row_by_row(graph)
    assert same(swapped(tmp_path / "whole", graph, plan))
    given = frames(graph, 4)
    expected = graph.outputs(given)
    kept = plan.tracks[track]
    waits = sum(isinstance(step, Wait) for step in tracks.inside(kept.steps))
    wrong = list[bool]()
    for number in range(waits):
        broken = [*plan.tracks]
        broken[track] = replace(kept, steps=without_waits(kept.steps, number))
        bad = replace(plan, tracks=tuple(broken))
        try:
            verify(bad, graph)
        except PlanError:
            status, found = swapped(tmp_path / f"{number}", graph, bad).run(given)
            wrong.append(status != 0 or not np.array_equal(found, expected))
    assert any(wrong), wrong


def test_a_wait_for_what_never_comes_ends(tmp_path: Path) -> None:
    graph = network(np.random.default_rng(0))
    plan = row_by_row(graph)
    computing, moving = plan.tracks
    endless = replace(computing, steps=(*computing.steps, Wait("io", 1000)))
    program = swapped(tmp_path, graph, replace(plan, tracks=(endless, moving)))
    status, _ = program.run(frames(graph, 2))
    assert status == 6  # nn_invoke does not return NN_OK


def test_cards_that_do_not_hold_the_image_are_refused(tmp_path: Path) -> None:
    graph = network(np.random.default_rng(0))
    program, given = swapped(tmp_path, graph, row_by_row(graph)), frames(graph, 2)
    whole = program.card.read_bytes()
    assert program.run(given)[0] == 0
    for damaged in (
        whole[:-512],  # too small
        whole[:-512] + bytes(512),  # not written to its end
        bytes(512) + whole[512:],  # no header
        whole[:8] + b"\2" + whole[9:],  # another version's
        whole[:16] + bytes(8) + whole[24:],  # another network's
        whole[:24] + bytes(8) + whole[32:],  # another plan's
    ):
        program.card.write_bytes(damaged)
        assert program.run(given)[0] == 2  # nn_init does not return NN_OK
    program.card.unlink()
    assert program.run(given)[0] == 2


def test_a_card_that_cannot_be_written_is_said_to_fail(tmp_path: Path) -> None:
    graph = network(np.random.default_rng(0))
    plan, device = row_by_row(graph), tmp_path / DEVICE.name
    whole, started = DEVICE.read_text(), "    device.stored = device.image +"
    refuse = "    if (direction == STORAGE_WRITE) {\n        return STORAGE_FAILED;\n    }\n"
    device.write_text(whole.replace(started, refuse + started))
    assert whole.count(started) == 1
    files = sources(graph, plan)
    program = Native(tmp_path / "program", graph, plan, files=files, device=device)
    status, found = program.run(frames(graph, 2))
    assert status in (3, 4) and not len(found)  # nn_init succeeds, nn_feed does not


def test_weights_are_on_the_card_alone() -> None:
    graph, plan = in_parts()
    text = sources(graph, plan)["model.c"]
    assert "int8_t nn_conv2d0_weights" not in text
    assert not [line for line in text.splitlines() if "static const int8_t" in line]


@pytest.mark.parametrize("network_of", quick(0, (alexnet, mobilenet, vgg16), ci=0))
def test_hundreds_of_thousands_of_tiles_are_a_short_program(network_of: object) -> None:
    graph: Graph = network_of()  # type: ignore[operator]
    plan = planned(graph, 320_000)
    text = sources(graph, plan)["model.c"]
    body = text[text.index("nn_status_t nn_invoke(void)") :]
    assert body.count(";") < 8 * sum(1 for _ in tracks.inside(plan.tracks[0].steps))
    assert "for (int32_t" in body and len(layers(graph)) > 10
    program = text[text.index("nn_card_program[") :]
    assert int(program[len("nn_card_program[") : program.index("]")]) < 1 << 14


def test_refuses_what_it_does_not_run() -> None:
    graph = network(np.random.default_rng(0))
    plan = row_by_row(graph)
    other = replace(plan.tracks[0], name="more", steps=(Signal("more"), *plan.tracks[0].steps))
    with pytest.raises(ThimbleError, match="one track that computes"):
        sources(graph, replace(plan, tracks=(*plan.tracks, other)))
    with pytest.raises(ThimbleError, match="one frame at a time"):
        sources(graph, row_by_row(graph, frames=2))
