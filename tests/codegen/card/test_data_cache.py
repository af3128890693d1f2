"""Transfers that go past a data cache: what is cleaned and forgotten."""

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
from pipeline.strategies.swap import Swap
from tests.codegen.card.support import elements, large
from tests.codegen.support import Native, frames
from tests.strategies.swap import nets
from tests.strategies.swap.nets import random_chain
from tests.tiers import quick

LINE = 32
DEVICE = Path(__file__).parent / "fixture" / "write_back_device.c"
LATE = {"late_device.h": DEVICE.with_name("late_device.h").read_text()}


def board(sram_bytes: int, line_bytes: int = LINE) -> Hardware:
    plain = nets.board(sram_bytes)
    return replace(plain, card=replace(plain.card, line_bytes=line_bytes))


def right(folder: Path, graph: Graph, plan: Plan, old: str = "", new: str = "") -> bool:
    """Whether the C, with ``new`` instead of ``old``, gives the graph's outputs with a cache."""
    files = generate(graph, plan, board(arena_bytes(plan)), {}) | LATE
    assert not old or files["storage.c"].count(old) == 1
    files["storage.c"] = files["storage.c"].replace(old, new) if old else files["storage.c"]
    options = (f"-DSTORAGE_LINE_BYTES={LINE}", *(("-Wno-error",) if old else ()))
    program = Native(
        folder, graph, plan, files=files, device=DEVICE, options=options, sanitize=not old
    )
    status, found = program.run(frames(graph, 3))
    return status == 0 and np.array_equal(found, graph.outputs(frames(graph, 3)))


def planned(graph: Graph, **keys: object) -> Plan:
    plan = Swap(**keys).plan(graph, board(elements(graph) // 4))  # type: ignore[arg-type]
    wide = [replace(m, bytes=1 << 24) if m.name == "sram" else m for m in plan.memories]
    return replace(plan, memories=tuple(wide))


@pytest.mark.parametrize("seed", quick(0, (9, 0, 3, 4, 11, 12, 15), ci=1))
@pytest.mark.parametrize("keys", quick(1, [{}, {"scheduler": "swapnn", "buffer_bytes": 640}]))
def test_computes_what_the_graph_does(tmp_path: Path, seed: int, keys: dict[str, object]) -> None:
    graph = random_chain(seed)
    plan = planned(graph, **keys)
    assert plan.memory["sram"].granule_bytes == LINE and arena_bytes(plan) % LINE == 0
    verify(plan, graph)
    assert right(tmp_path, graph, plan)


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
    networks = (large((12, 16, 32), 32, 32), random_chain(9))
    answers = (right(tmp_path / g.name, g, planned(g), *WITHOUT[what]) for g in networks)
    assert not all(answers)


def test_a_plan_for_another_line_is_refused() -> None:
    graph = random_chain(9)
    plan = planned(graph)
    text = generate(graph, plan, board(arena_bytes(plan)), {})["model.c"]
    assert f"STORAGE_LINE_BYTES != {LINE}" in text
    with pytest.raises(PlanError, match=r"in granules of 32 B, .* has ram in granules of 1 B"):
        of_board(plan, nets.board(1 << 16))
    with pytest.raises(ThimbleError, match=r"buffer_bytes=200: .* needs a multiple of 32"):
        planned(graph, scheduler="swapnn", buffer_bytes=200)
