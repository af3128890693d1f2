"""The zoo on simulated cores, row by row and whole tensors one after the other: all networks whose
constants and arena their memory holds, which is more than the boards'. Every output is compared
with the integer graph's.

Three networks are left out: the constants of AlexNet (62 MB), VGG16 (138 MB) and ResNet18 (12 MB)
are more than the 8 MiB that machines have for them outside of the chip.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware, MemoryRegion
from pipeline.plan.cost import cost
from pipeline.quantize.int8 import Int8
from pipeline.strategies.base import Strategy
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import machines
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.comparing import equal
from tests.importers.tflite_reference import frames
from tests.models.counting import member
from tests.models.test_zoo import TABLE, Row
from tests.targets.cortex_m import ONE_A_CORE, board_named, built, needs_arm, outputs, simulated

INSIDE = 1_500_000
"""Parameters that are constants of less than 3 MiB as kernels want them, were all of them there
twice, for two kernels."""

SEPARATE = MemoryRegion("quadspi", 0x90000000, machines.OUTSIDE_BYTES, "rom", external=True)


def roomy(name: str, row: Row) -> Hardware:
    """The board with all the memory that its simulated machine has; every other one streams."""
    most = machines.DESK_OFFSET
    board = board_named(name, sram_bytes=most, flash_bytes=most)
    board = replace(board, streams_input=ONE_A_CORE.index(name) % 2 == 1)
    if row.parameters < INSIDE:
        return board
    return replace(board, weights_in="external_flash", regions=(*board.regions, SEPARATE))


HELD = [row for row in TABLE if row.parameters < machines.OUTSIDE_BYTES]
TOO_LARGE = {"alexnet", "resnet18", "vgg16"}
TWICE = {("googlenet", "nucleo_g0b1re", "joint")}
"""Weights of rows on two kernels, which lie there for each, are more than the machine holds."""


def test_only_what_no_machine_holds_is_left_out() -> None:
    assert {row.name for row in TABLE} - {row.name for row in HELD} == TOO_LARGE


@cache
def graph_of(name: str) -> Graph:
    """Random weights, 8 bits."""
    model = member(name)
    weights = RandomWeights(images=4).train(model, {}, Run(1)).weights
    graph = Int8(images=2).graph(name, model, weights, {})
    return passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Joint(), Ordinary()], ids=["joint", "ordinary"])
@pytest.mark.parametrize("name", ONE_A_CORE)
@pytest.mark.parametrize("row", HELD, ids=[row.name for row in HELD])
def test_the_zoo(row: Row, name: str, strategy: Strategy, tmp_path: Path) -> None:
    hardware, graph = roomy(name, row), graph_of(row.name)
    plan = strategy.plan(graph, hardware)
    costs = cost(plan, graph, hardware)
    assert costs.macs_executed <= row.macs  # rows that nothing reads are not made
    size = built(tmp_path, graph, hardware, plan)
    if (row.name, name, strategy.name) in TWICE:
        assert (size.status, size.resource) == ("infeasible", "quadspi")
        return
    assert size.status == "ok"
    given = frames(graph, 3)[2:]
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs).reshape(1, -1), graph.outputs(given).reshape(1, -1))
    assert size.ram_objects["nn_arena"] == costs.arena_bytes
    assert 0 <= costs.arena_bytes - (runs.arena_touched_bytes or 0) < 0.1 * costs.arena_bytes
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
