"""Results that are larger than the arena stay on the card and come piece by piece; one frame after
the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.strategies.swap import Swap
from pipeline.targets import host, simavr, toolchain
from tests.codegen.card.support import planned, swapped
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.strategies.swap.nets import Chain, random_chain
from tests.targets.conftest import needs_avr
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

RESERVE = 4096


def large() -> Graph:
    chain = Chain("net", (12, 11, 3))
    chain.conv(16, 3, 1, 1)
    chain.conv(48, 3, 1, 1)
    return chain.graph(np.random.default_rng(0))


def twice(graph: Graph) -> IntArray:
    """Three frames, the first one again, and the second."""
    given = frames(graph, 3, seed=1)
    return given[[0, 1, 2, 0, 1]]


def test_comes_piece_by_piece_frame_after_frame(tmp_path: Path) -> None:
    graph = large()
    plan = planned(graph, 3000)
    assert arena_bytes(plan) < graph.tensors[graph.output].size
    program = swapped(tmp_path, graph, plan)
    assert "NN_OUTPUT_TAKEN" in program.files["model.h"]
    assert "nn_output(" not in program.files["model.c"]
    given = twice(graph)
    found = program(given)
    equal(found, graph.outputs(given))
    equal(found[0], found[3])


def on_m7(sram_bytes: int) -> Hardware:
    hardware = board_named("stm32f746g_sd")
    return replace(hardware, sram_bytes=sram_bytes, stack_reserve_bytes=RESERVE)


@needs_arm
@pytest.mark.ci
def test_on_a_cortex_m7_and_by_its_host_program(tmp_path: Path) -> None:
    graph, hardware = large(), on_m7(3008 + RESERVE)
    plan = Swap().plan(graph, hardware)
    assert arena_bytes(plan) < graph.tensors[graph.output].size
    size = built(tmp_path, graph, hardware, plan)
    given = twice(graph)
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
    images = np.ascontiguousarray(given.astype(np.int8)).view(np.uint8)
    toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    native = host.infer(tmp_path / "build" / "host", images)
    equal(native.reshape(-1), graph.outputs(given).reshape(-1))


@needs_avr
@pytest.mark.slow
def test_on_an_uno(tmp_path: Path) -> None:
    chain = Chain("net", (6, 6, 4))
    chain.conv(40, 3, 1, 1)
    graph, hardware = chain.graph(np.random.default_rng(0)), board_named("arduino_sd")
    plan = Swap().plan(graph, hardware)
    assert arena_bytes(plan) < graph.tensors[graph.output].size
    size = built(tmp_path, graph, hardware, plan)
    given = twice(graph)
    images = given.astype(np.int8).view(np.uint8)
    runs = simavr.run(tmp_path / "build", vars(size), hardware, images)
    equal(outputs(graph, runs), graph.outputs(given))


@needs_arm
@pytest.mark.parametrize("seed", quick(0, (9, 4), ci=0))
def test_the_same_again_after_others_whose_result_fits(tmp_path: Path, seed: int) -> None:
    graph, hardware = random_chain(seed), on_m7(4096 + RESERVE)
    size = built(tmp_path, graph, hardware, Swap().plan(graph, hardware))
    given = twice(graph)
    found = outputs(graph, simulated(tmp_path, graph, hardware, size, given))
    equal(found, graph.outputs(given))
    equal(found[1], found[4])
