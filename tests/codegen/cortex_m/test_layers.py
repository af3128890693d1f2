"""One random layer at a time, by each set of kernels: their portable twin, and their assembly, give
the graph's outputs; the twin, with ASan and UBSan, touches nothing that it was not granted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import FlashTiming, Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap
from tests.codegen.cortex_m.by_row.layers import KINDS as ROWS
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.support import by_rows, core, kernels
from tests.codegen.support import by_tier, checked, frames, on_board
from tests.graphs import random_graph
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

SLOW_FLASH = replace(core(), flash_timing=FlashTiming(9, 8, 32, 8, 8))
Found = tuple[Graph, Plan, Hardware, bool]
"""A layer, its plan, for which core, and whether the kernel that it is for was chosen."""


def whole(kind: str, seed: int, hardware: Hardware, prefix: str) -> Found:
    graph = KINDS[kind](np.random.default_rng(seed))
    strategy = Swap() if hardware.card.bytes else Ordinary()
    plan = strategy.plan(graph, hardware)
    used = kernels(plan)[graph.operators[-1].name]
    return graph, plan, hardware, used.startswith(prefix)


def dsp(kind: str, seed: int) -> Found:
    return whole(kind, seed, core(), "cortex_m.")


def thumb(kind: str, seed: int) -> Found:
    return whole(kind, seed, core("cortex-m0plus"), "thumb.")


def ordered(kind: str, seed: int) -> Found:
    """Weights in windows, in the order that the tensor has, of signed inputs."""
    while not KINDS[kind](np.random.default_rng(seed)).tensors["image"].dtype.signed:
        seed += 100
    hardware = replace(board_named("stm32f746g_sd"), sram_bytes=1 << 18, stack_reserve_bytes=0)
    graph, plan, _, used = whole(kind, seed, hardware, "cortex_m.ordered")
    op = graph.operators[-1]
    made = graph.tensors[op.output].shape
    wide = len(made) == 1 or made[1] > 1  # else two pixels at a time are one too many
    meant = wide and getattr(op, "groups", 1) == 1
    return graph, plan, hardware, used or not meant


def row(kind: str, seed: int) -> Found:
    """In blocks; some requantizations a kernel leaves to others."""
    graph, pixels, kernel = ROWS[kind](np.random.default_rng(seed))
    hardware = SLOW_FLASH if seed % 2 else core()
    plan = by_rows(graph, hardware, pixels)
    used, fused = kernels(plan)[graph.operators[-2].name], "cortex_m.row_fused"
    return graph, plan, hardware, used in (kernel, fused if "pointwise" in kernel else kernel)


Draw = Callable[[str, int], Found]
PLAIN = ("conv2d", "pointwise", "depthwise", "dense")
LAYERS: list[tuple[Draw, str]] = [
    *((dsp, kind) for kind in KINDS),
    *((row, kind) for kind in ROWS),
    *((thumb, kind) for kind in (*PLAIN, "dilated")),
    *((ordered, kind) for kind in PLAIN),
]


@pytest.mark.parametrize(
    ("layer", "seeds"),
    by_tier(LAYERS, range(1), range(1, 4), range(4, 50)),
    ids=lambda v: f"{v[0].__name__} {v[1]}" if isinstance(v, tuple) else None,
)
def test_random_layers(layer: tuple[Draw, str], seeds: range, tmp_path: Path) -> None:
    draw, kind = layer
    used = 0
    for seed in seeds:
        graph, plan, hardware, as_meant = draw(kind, seed)
        checked(tmp_path / f"{seed}", graph, plan, hardware, frames(graph, 4, seed))
        used += as_meant
    assert used >= len(seeds) // 2


@pytest.mark.parametrize(
    ("kind", "seed", "used"), [("pointwise", 2004, True), ("pool", 112, True),
                               ("wide", 142, False), ("image", 114, False)],
    ids=["one row", "padded average", "all in the padding", "a row in the padding"],
)  # fmt: skip
def test_seldom_rows(kind: str, seed: int, used: bool, tmp_path: Path) -> None:
    """A pooling beside the layer, whose one row is where it is said to be before the call; an
    average over all rows, padded; windows that lie in the padding, or those of the last row, which
    is made where the row before it was read."""
    graph, plan, hardware, as_meant = row(kind, seed)
    checked(tmp_path, graph, plan, hardware, frames(graph, 3, seed))
    assert as_meant == used


@pytest.mark.parametrize("seeds", quick(1, [range(2000, 2002), range(2002, 2060)], ci=0))
def test_random_networks(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        graph = random_graph(seed)
        for hardware in (core(), core("cortex-m0plus")):
            plan = Ordinary().plan(graph, hardware)
            checked(tmp_path / f"{seed} {hardware.cpu}", graph, plan, hardware)


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("draw, kind", LAYERS)
def test_many_on_a_core(draw: Draw, kind: str, tmp_path: Path) -> None:
    names = {dsp: "nucleo_f446re", thumb: "nucleo_g0b1re", ordered: "stm32f746g_sd"}
    for seed in range(100, 150):
        graph, plan, *_ = draw(kind, seed)
        hardware = board_named(names.get(draw, ("nucleo_f446re", "nucleo_f767zi")[seed % 2]))
        on_board(tmp_path / f"{seed}", graph, hardware, plan)
