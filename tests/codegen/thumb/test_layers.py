"""Kernels in Thumb-1 assembly: their C gives the graph's outputs natively, with ASan and UBSan, and
they give them on the simulated core, with the stack that was announced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.patch import Patch
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.support import core
from tests.codegen.int8.support import Native, frames
from tests.codegen.support import by_tier
from tests.comparing import equal
from tests.graphs import Net, random_graph
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

M0PLUS = core("cortex-m0plus")
BOARD = "nucleo_g0b1re"
OWN = {"conv2d": "thumb.conv2d", "dilated": "thumb.conv2d", "pointwise": "thumb.conv2d",
       "depthwise": "thumb.depthwise", "dense": "thumb.dense"}  # fmt: skip


def kernels(plan: Plan) -> list[str]:
    return [getattr(step, "kernel", "") for step in plan.tracks[0].steps]


def given(graph: Graph, plan: Plan, folder: Path) -> None:
    verify(plan, graph)
    files = generate(graph, plan, M0PLUS, {})
    images = frames(graph, 4)
    equal(Native(folder, graph, plan, files=files)(images), graph.outputs(images))


def on_the_core(graph: Graph, folder: Path, plan: Plan | None = None, **changes: object) -> None:
    hardware = board_named(BOARD, **changes)
    size = built(folder, graph, hardware, plan)
    images = frames(graph, 3)
    images[0] = graph.tensors[graph.input].zero_point  # a dense layer's list of inputs is empty
    runs = simulated(folder, graph, hardware, size, images)
    equal(outputs(graph, runs), graph.outputs(images))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


def layer(kind: str, seed: int) -> Graph:
    return KINDS[kind](np.random.default_rng(seed))


def check(kind: str, seed: int, folder: Path) -> bool:
    graph = layer(kind, seed)
    plan = Ordinary().plan(graph, M0PLUS)
    given(graph, plan, folder / f"{kind} {seed}")
    return kernels(plan)[-1] == OWN[kind]


@pytest.mark.parametrize(("kind", "seeds"), by_tier(OWN, range(1), range(1, 5), range(5, 55)))
def test_random_layers(kind: str, seeds: range, tmp_path: Path) -> None:
    used = sum(check(kind, seed, tmp_path) for seed in seeds)
    assert used >= len(seeds) // 2


def network(seed: int) -> Graph:
    """All kinds, of sizes that nothing divides."""
    net = Net((11, 9, 3), np.random.default_rng(seed), ("int8", "uint8")[seed % 2], name="layers")
    net.conv(13, (3, 3), stride=(1, 2))
    net.depthwise((3, 3))
    start = net.conv(17, (1, 1))
    net.plus(net.conv(17, (3, 3), dilation=(2, 1), padding=(2, 2, 1, 1)), start)
    net.depthwise((5, 3), stride=(2, 2), padding=(1, 2, 1, 1))
    net.conv(10, (2, 3), stride=(2, 1))
    net.dense(40)
    net.dense(11)
    return net.graph()


@needs_arm
@pytest.mark.parametrize("seed", quick(1, range(10), ci=2))
def test_on_the_core(seed: int, tmp_path: Path) -> None:
    graph = network(seed)
    hardware = board_named(BOARD)
    assert set(OWN.values()) <= set(kernels(Ordinary().plan(graph, hardware)))
    on_the_core(graph, tmp_path)


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("kind", OWN)
def test_many_on_the_core(kind: str, tmp_path: Path) -> None:
    for seed in range(60):
        on_the_core(layer(kind, seed), tmp_path / f"{seed}")


@needs_arm
@pytest.mark.ci
def test_far_apart_channels_and_long_rows(tmp_path: Path) -> None:
    """What needs more than one instruction to be reached."""
    net = Net((3, 70, 2), np.random.default_rng(5), name="wide")
    net.conv(300, (1, 1))
    net.depthwise((3, 3))
    net.depthwise((3, 3), stride=(1, 2))
    net.conv(40, (1, 1))
    on_the_core(net.graph(), tmp_path)


@pytest.mark.parametrize("how", quick(1, ["rows", "tiles"]))
@pytest.mark.parametrize("seed", quick(1, range(8), ci=1))
def test_parts_of_images(how: str, seed: int, tmp_path: Path) -> None:
    """Rows that lie anywhere, and tiles."""
    net = Net((12, 10, 3), np.random.default_rng(seed), name="parts")
    net.conv(8, (3, 3))
    net.depthwise()
    net.conv(6, (3, 3))
    net.conv(12, (1, 1))
    net.dense(5)
    graph = net.graph()
    if how == "rows":
        plan = Joint().plan(graph, replace(M0PLUS, sram_bytes=3000))
    else:
        plan = Patch(rows=2, columns=2).plan(graph, M0PLUS)
    assert any(kernel.startswith("thumb.") for kernel in kernels(plan))
    given(graph, plan, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 120, 40))
def test_random_networks(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 40):
        graph = random_graph(seed)
        for strategy in (Ordinary(), Joint()):
            plan = strategy.plan(graph, M0PLUS)
            given(graph, plan, tmp_path / f"{seed} {type(strategy).__name__}")


def test_without_room_for_scratch_it_is_portable() -> None:
    graph = network(0)
    plan = Ordinary().plan(graph, M0PLUS)
    plain = Ordinary().plan(graph, replace(M0PLUS, kernels="portable"))
    needed = max(buffer.extent[1] for buffer in plain.buffers if buffer.memory != "flash") // 2
    small = replace(M0PLUS, sram_bytes=needed + M0PLUS.stack_reserve_bytes + 64)
    found = kernels(Ordinary().plan(graph, small))
    assert "int8.conv2d" in found and "int8.conv2d" not in kernels(plan)
