"""Plans of two tracks as C: byte for byte what the graph computes, and not without waiting."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, cortex_m
from pipeline.plan.pieces import Pieces
from pipeline.plan.unrolled import repeated
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Finish, Loop, Plan, Signal, Step, Wait
from pipeline.search.moves.swap import searched
from pipeline.search.swap.best import Aim
from pipeline.search.view.tiles import layers
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap
from tests.codegen.card.support import elements, large, planned, rows, sources, swapped, twice
from tests.codegen.support import Native, checked, frames
from tests.comparing import equal
from tests.schedules.test_swapped import network, row_by_row
from tests.strategies.swap import test_best as branches
from tests.strategies.swap.nets import Chain, alexnet, mobilenet, random_chain, vgg16
from tests.strategies.swap.test_best import by_tile, residual
from tests.strategies.swap.test_swap import small, staying_network
from tests.targets.cortex_m import board_named
from tests.tiers import quick


def same(program: Native, count: int = 3) -> bool:
    given = frames(program.graph, count)
    status, found = program.run(given)
    assert status == 0, status
    equal(found, program.graph.evaluate(given), **program.about)
    return True


def inside(steps: Iterable[Step]) -> list[Step]:
    return [step for step, _ in repeated(steps)]


def in_parts() -> tuple[Graph, Plan]:
    """Tiles are parts of the channels: sums are kept; weights lie in a ring that goes round."""
    graph = Chain("net", (3, 3, 30)).conv(5, 3, 1, 1).graph(np.random.default_rng(2))
    return graph, planned(graph, 1 << 14, scheduler="swapnn", buffer_bytes=200)


def around(kind: str) -> tuple[Graph, Plan]:
    """Tiles of channels whose sums go around the end of their window."""
    chain = Chain("net", (2, 2, 60) if kind == "conv" else (1, 1, 60))
    chain.conv(13, 1) if kind == "conv" else chain.dense(37)
    graph = chain.graph(np.random.default_rng(1))
    return graph, planned(graph, 1 << 14, scheduler="swapnn", buffer_bytes=100)


def searched_for(graph: Graph, share: float = 4) -> tuple[Graph, Plan]:
    return graph, planned(graph, int(elements(graph) / share))


def in_squares(graph: Graph, **keys: object) -> tuple[Graph, Plan]:
    total, keys["scheduler"] = elements(graph), "swapnn"
    return graph, planned(graph, total, buffer_bytes=max(200, total // 20), **keys)


def in_flash() -> tuple[Graph, Plan]:
    graph = staying_network()
    plan = searched("joint", graph, small(9_000, 0), 1, Aim(flash_bytes=4_000))
    assert int(dict(plan.notes)["weights_in_flash_bytes"])
    return graph, plan


CASES: dict[str, Callable[[], tuple[Graph, Plan]]] = {
    "searched, 9": lambda: searched_for(random_chain(9)),
    "in square tiles, 3": lambda: in_squares(random_chain(3)),
    "around a window, conv": lambda: around("conv"),
    "residual": lambda: searched_for(residual(0), 3),
    "branches, 2": lambda: searched_for(branches.random_network(2), 3),
    "large results of 2 frames": lambda: (large(), planned(large(), 3000, frames=2)),
    "4 frames": lambda: (residual(), planned(residual(), elements(residual()) // 4, frames=4)),
    # those of CI
    "large result": lambda: (large(), planned(large(), 3000)),
    "2 frames in square tiles": lambda: in_squares(random_chain(4), frames=2),
    "around a window, dense": lambda: around("dense"),
    "channels of a tile through several layers": lambda: (by_tile(), planned(by_tile(), 2400)),
    "weights that stay in flash": in_flash,
    "sums over input channels": in_parts,
    **{f"searched, {n}": lambda n=n: searched_for(random_chain(n)) for n in (0, 3, 4)},
    **{f"in square tiles, {n}": lambda n=n: in_squares(random_chain(n)) for n in (0, 4, 9)},
    "branches, 0": lambda: searched_for(branches.random_network(0), 1),
    # those of each night
    **{f"branches, {n}": lambda n=n: searched_for(branches.random_network(n), 1 + n % 4)
       for n in (1, *range(3, 12))},
    **{each.__name__: lambda each=each: searched_for(each(0), 3)
       for each in (branches.squeezed, branches.inception)},
}  # fmt: skip


@pytest.mark.parametrize("name", quick(4, CASES, ci=16))
def test_computes_what_the_graph_does(tmp_path: Path, name: str) -> None:
    graph, plan = CASES[name]()
    native = checked(tmp_path, graph, plan, given=twice(graph), files=sources(graph, plan))
    if name.startswith("large result"):
        assert "NN_OUTPUT_TAKEN" in native.files["model.h"]
        assert "nn_output(" not in native.files["model.c"]


def test_sums_are_kept_between_tiles_and_go_around_their_windows() -> None:
    kinds = {type(step).__name__ for step in inside(in_parts()[1].tracks[0].steps)}
    assert {"Clear", "Finish", "Compute"} <= kinds
    for kind in ("conv", "dense"):
        _, plan = around(kind)
        steps = inside(plan.tracks[0].steps)
        sums = [step.acc for step in steps if isinstance(step, Finish)]
        assert any(Part.of(piece, plan.buffer[piece.buffer]).around[-1] for piece in sums)


def without_waits(steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
    """``steps`` whose wait number ``number`` is left out, in all turns of its loop."""
    found, seen = list[Step](), 0
    for step in steps:
        if isinstance(step, Loop):
            inner = sum(isinstance(s, Wait) for s in inside(step.body))
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
    """Bytes arrive late, and their place is poison until then."""
    graph = rows()
    plan = row_by_row(graph)
    assert same(swapped(tmp_path / "whole", graph, plan))
    given = frames(graph, 4)
    expected = graph.evaluate(given)
    kept = plan.tracks[track]
    waits = sum(isinstance(step, Wait) for step in inside(kept.steps))
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


def wrong(whole: bytes) -> list[bytes | None]:
    """List what a card may hold instead of ``whole``."""
    return [
        bytes(512) + whole[512:],  # no header
        whole[:-512],  # too small
        None,
        b"",
        whole[:-1],  # cut short in a block
        whole[:-512] + bytes(512),  # not written to its end
        whole[:8] + b"\2" + whole[9:],  # another version's
        whole[:16] + bytes(8) + whole[24:],  # another network's
        whole[:24] + bytes(8) + whole[32:],  # another plan's
        whole[:-488] + bytes(8) + whole[-480:],  # the end of another plan's
    ]


@pytest.mark.parametrize("network_of", quick(0, (alexnet, mobilenet, vgg16), ci=0))
def test_hundreds_of_thousands_of_tiles_are_a_short_program(network_of: object) -> None:
    graph: Graph = network_of()  # type: ignore[operator]
    plan = planned(graph, 320_000)
    text = sources(graph, plan)["model.c"]
    body = text[text.index("nn_status_t nn_invoke(void)") :]
    assert body.count(";") < 8 * sum(1 for _ in inside(plan.tracks[0].steps))
    assert "for (int32_t" in body and len(layers(graph)) > 10
    program = text[text.index("nn_card_program[") :]
    assert int(program[len("nn_card_program[") : program.index("]")]) < 1 << 14


def test_refuses_what_it_does_not_run() -> None:
    graph = network(np.random.default_rng(0))
    plan = row_by_row(graph)
    other = replace(plan.tracks[0], name="more", steps=(Signal("more"), *plan.tracks[0].steps))
    with pytest.raises(ThimbleError, match="one track that computes"):
        sources(graph, replace(plan, tracks=(*plan.tracks, other)))
    with pytest.raises(ThimbleError, match="2 frames in flight are not sealed"):
        Pieces.of(row_by_row(graph, frames=2))


def board(sram_bytes: int) -> Hardware:
    return replace(board_named("stm32f746g_sd"), sram_bytes=sram_bytes, stack_reserve_bytes=0)


def computing(plan: Plan) -> list[Compute]:
    return [step for step in inside(plan.tracks[0].steps) if isinstance(step, Compute)]


def convolution() -> tuple[Graph, Plan]:
    graph = Chain("net", (6, 6, 8)).conv(10, 3, 1, 1).graph(np.random.default_rng(0))
    return graph, Swap().plan(graph, board(1 << 14))


def test_weights_elsewhere_and_other_types_are_for_other_kernels() -> None:
    graph, plan = convolution()
    kernel = cortex_m.Ordered("cortex-m7")
    (step,) = computing(plan)
    form = Form.of(step, plan.buffer, graph)
    assert kernel.accepts(form) and kernel.cycles(form) > 0
    assert not kernel.scratch_bytes(form)
    in_flash = Ordinary().plan(graph, board(1 << 14))
    (stored,) = computing(in_flash)
    assert not stored.kernel.startswith("cortex_m.ordered")
    why = kernel.why_not(Form.of(stored, in_flash.buffer, graph))
    assert why.startswith("cortex_m.ordered is for") and "window" in why
    assert kernel.why_not(replace(form, partial=True))
    assert kernel.why_not(replace(form, overlaps=frozenset({"input"})))
    for fast in cortex_m.kernels("cortex-m7"):
        assert not fast.accepts(form), fast.name
