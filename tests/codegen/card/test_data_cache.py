"""Transfers that go past a data cache: what is cleaned and forgotten; no line is shared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.checks import arena_bytes
from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.fit import of_board
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.bounds import Range
from pipeline.schedules.lower import laid_at
from pipeline.schedules.swapped import Act, Job, Kind, Swapped, Window
from pipeline.strategies.swap import Swap
from tests.codegen.int8.support import Native, frames
from tests.strategies.swap import nets
from tests.strategies.swap.nets import Chain, random_chain
from tests.tiers import quick

LINE = 32
DEVICE = Path(__file__).parent / "fixture" / "write_back_device.c"
LATE = {"late_device.h": DEVICE.with_name("late_device.h").read_text()}


def board(sram_bytes: int, line_bytes: int = LINE) -> Hardware:
    plain = nets.board(sram_bytes)
    return replace(plain, card=replace(plain.card, line_bytes=line_bytes))


def cached(folder: Path, graph: Graph, plan: Plan, sanitize: bool = True) -> Native:
    files = generate(graph, plan, board(arena_bytes(plan)), {}) | LATE
    options = (f"-DSTORAGE_LINE_BYTES={LINE}",)
    return Native(
        folder, graph, plan, files=files, device=DEVICE, options=options, sanitize=sanitize
    )


def right(program: Native) -> bool:
    given = frames(program.graph, 3)
    status, found = program.run(given)
    return status == 0 and np.array_equal(found, program.graph.outputs(given))


def rows() -> Graph:
    """Of whole blocks, which go straight to where they belong, to the card and from it."""
    chain = Chain("net", (12, 16, 32))
    chain.conv(32, 3, 1, 1)
    chain.conv(32, 3, 1, 1)
    return chain.graph(np.random.default_rng(0))


def planned(graph: Graph, share: int = 4, **keys: object) -> Plan:
    sram_bytes = sum(tensor.size for tensor in graph.tensors.values()) // share
    plan = Swap(**keys).plan(graph, board(sram_bytes))  # type: ignore[arg-type]
    wide = [replace(m, bytes=1 << 24) if m.name == "sram" else m for m in plan.memories]
    return replace(plan, memories=tuple(wide))


@pytest.mark.parametrize("seed", quick(0, (9, 0, 3, 4, 11, 12, 15), ci=1))
@pytest.mark.parametrize("keys", quick(1, [{}, {"scheduler": "swapnn", "buffer_bytes": 640}]))
def test_computes_what_the_graph_does(tmp_path: Path, seed: int, keys: dict[str, object]) -> None:
    graph = random_chain(seed)
    plan = planned(graph, **keys)
    assert plan.memory["sram"].granule_bytes == LINE and arena_bytes(plan) % LINE == 0
    verify(plan, graph)
    assert right(cached(tmp_path, graph, plan))


CLEAN, DISCARD = "data_cache_clean(memory,", "data_cache_discard(memory,"
WITHOUT = {
    "cleaning before a write": (CLEAN, f"if (storage.direction == STORAGE_READ) {CLEAN}"),
    "cleaning before a read": (CLEAN, f"if (storage.direction == STORAGE_WRITE) {CLEAN}"),
    "forgetting": (DISCARD, "(void)(memory,"),
    "the whole blocks": ("if (state == MOVING) {", "if (0) {"),
    "the first block": ("in_step(storage.first, ", "in_step(storage.first, 0 * "),
    "the last block": ("in_step(storage.last, ", "in_step(storage.last, 0 * "),
}


@pytest.mark.parametrize("what", quick(1, WITHOUT, ci=0))
def test_without_it_there_is_another_answer(tmp_path: Path, what: str) -> None:
    """On rows that are whole blocks, or on some that are not."""
    old, new = WITHOUT[what]

    def damaged(name: str, graph: Graph) -> bool:
        plan = planned(graph)
        files = generate(graph, plan, board(arena_bytes(plan)), {}) | LATE
        assert files["storage.c"].count(old) == 1
        files["storage.c"] = files["storage.c"].replace(old, new)
        options = (f"-DSTORAGE_LINE_BYTES={LINE}", "-Wno-error")
        program = Native(
            tmp_path / name,
            graph,
            plan,
            sanitize=False,
            files=files,
            device=DEVICE,
            options=options,
        )
        return not right(program)

    assert damaged("whole", rows()) or damaged("parts", random_chain(9))


def beside(between: int) -> tuple[Graph, Plan]:
    """The second convolution's weights arrive while the first one computes, ``between`` bytes
    behind what it makes: 528 B from a line on."""
    chain = Chain("net", (4, 4, 3))
    chain.conv(33, 3, 1, 1)
    chain.conv(32, 1)
    graph = chain.graph(np.random.default_rng(0))
    tensors, top, windows = graph.tensors, 0, dict[str, Window]()
    for name in ("input", "conv2d0.w", "conv2d0", "conv2d1.w", "conv2d1"):
        shape = tensors[name].shape
        windows[name] = Window(f"{name}@", tensors[name], top, shape)
        top += tensors[name].size
        top = top + between if name == "conv2d0" else -(-top // LINE) * LINE

    def act(kind: Kind, name: str, op: str = "", *given: str) -> Act:
        box = tuple(Range(0, extent) for extent in tensors[name].shape)
        read = tuple((windows[each].name, 0) for each in given)
        return Act(kind, windows[name].name, 0, box, 0, op, read)

    first = act("make", "conv2d0", "conv2d0", "input", "conv2d0.w")
    second = act("make", "conv2d1", "conv2d1", "conv2d0", "conv2d1.w")
    region = Swapped(
        ("input", "conv2d0.w", "conv2d1.w", "conv2d1"),
        ("conv2d0.b", "conv2d1.b"),
        tuple(windows.values()),
        (Job(1, (first,)), Job(2, (second,))),
        (
            Job(0, (act("load", "input"), act("load", "conv2d0.w"))),
            Job(0, (act("load", "conv2d1.w"),)),
            Job(2, (act("store", "conv2d1"),)),
        ),
    )
    return graph, laid_at([region], graph, board(2 * top), 2 * top, {}).plan("test")


@pytest.mark.parametrize(("between", "sound"), quick(1, [(0, False), (16, True)]))
def test_what_arrives_shares_no_line_with_what_is_computed_meanwhile(
    tmp_path: Path, between: int, sound: bool
) -> None:
    """Where it does, the verifier says so, and a cache gives another answer."""
    graph, plan = beside(between)
    if sound:
        verify(plan, graph)
    else:
        with pytest.raises(PlanError, match="race in sram"):
            verify(plan, graph)
        bytewise = [replace(m, granule_bytes=1) if m.name == "sram" else m for m in plan.memories]
        verify(replace(plan, memories=tuple(bytewise)), graph)
    assert right(cached(tmp_path, graph, plan)) == sound


def test_a_plan_for_another_line_is_refused() -> None:
    graph = random_chain(9)
    plan = planned(graph)
    text = generate(graph, plan, board(arena_bytes(plan)), {})["model.c"]
    assert f"STORAGE_LINE_BYTES != {LINE}" in text
    with pytest.raises(PlanError, match=r"in granules of 32 B, .* has ram in granules of 1 B"):
        of_board(plan, nets.board(1 << 16))
    with pytest.raises(ThimbleError, match=r"buffer_bytes=200: .* needs a multiple of 32"):
        planned(graph, scheduler="swapnn", buffer_bytes=200)
