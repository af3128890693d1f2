"""MLPerf Tiny's networks on simulated cores, byte by byte what tflite-micro answers: as whole
tensors, and row by row on boards nobody would have tried, an Arduino Mega among them. And the zoo,
both ways: all networks whose constants and arena the machines' memory holds, which is more than
the boards', so that AlexNet (62 MB), VGG16 (138 MB) and ResNet18 (12 MB) are left out."""

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.hardware import Hardware, MemoryRegion
from pipeline.importers.tflite import TFLite
from pipeline.plan.cost import cost
from pipeline.plan.fit import CHOSEN
from pipeline.plan.vocabulary import Plan
from pipeline.quantize.int8 import Int8
from pipeline.strategies.auto import Auto
from pipeline.strategies.base import Strategy
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import machines
from pipeline.targets.layers import of_functions
from pipeline.targets.runs import Runs
from pipeline.targets.toolchain import Size
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.codegen.support import on_board
from tests.comparing import equal
from tests.importers.test_tflite import MLPERF_TINY
from tests.importers.tflite_reference import frames, reference
from tests.models.counting import member
from tests.models.test_zoo import TABLE, Row
from tests.public_models import MODELS, needs_models
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import ONE_A_CORE, board_named, needs_arm
from tests.tiers import quick

PASSES = ("constants", "fold_reshape", "fold_pad", "dead_channels")
TFLM_ARENA = {
    "ad01_int8": 3_984,
    "kws_ref_model": 24_272,
    "pretrainedResnet_quant": 55_984,
    "vww_96_int8": 103_680,
}
"""Bytes that tflite-micro says it takes on a computer of 64 bits."""

ON_SMALL_BOARDS = (
    ("kws_ref_model", "nucleo_f302r8", "fast"),
    ("kws_ref_model", "nucleo_g431rb", "fast"),
    ("vww_96_int8", "nucleo_g431rb", "fast"),
    ("pretrainedResnet_quant", "nucleo_g431rb", "fast"),
    ("vww_96_int8", "nucleo_f302r8", "portable"),
)

pytestmark = pytest.mark.usefixtures("compiled_once", "no_host")


COUNT = 100
PLAN_BYTES = (3_400, 4_200)
"""Range that activations in the Mega's SRAM may take: the joint schedule, its input live."""
POINTWISE_CYCLES_A_MAC = 12


def network(model: str) -> Graph:
    return passes.applied(TFLite(path=str(MODELS / f"{model}.tflite")).graph(), PASSES)


def checked(
    model: str, hardware: Hardware, plan: Plan, folder: Path, count: int = 3
) -> tuple[Size, Runs]:
    """All outputs are tflite-micro's and the graph's, the stack is within its bound."""
    graph = network(model)
    given = frames(graph, count)
    expected = reference((MODELS / f"{model}.tflite").read_bytes(), given)
    equal(graph.evaluate(given).reshape(count, -1), expected)
    return on_board(folder, graph, hardware, plan, given, expected=expected)


WHOLE = [("kws_ref_model", "nucleo_l4r5zi", 3), *product(MLPERF_TINY, ONE_A_CORE, [50])]


@needs_models
@needs_arm
@pytest.mark.parametrize(("model", "board", "count"), quick(0, WHOLE, ci=1))
def test_whole_tensors_on_every_core(model: str, board: str, count: int, tmp_path: Path) -> None:
    """In what tflite-micro takes, the stack among it, with the fastest kernels with room there."""
    hardware, most = board_named(board), TFLM_ARENA[model]
    plan = Ordinary().plan(network(model), replace(hardware, sram_bytes=most))
    size, runs = checked(model, hardware, plan, tmp_path, count)
    assert size.statics_bytes + (runs.stack_bytes or 0) < most


@needs_models
@needs_arm
@pytest.mark.parametrize(("model", "board", "kernels"), quick(0, ON_SMALL_BOARDS, ci=0))
def test_row_by_row_on_small_boards(model: str, board: str, kernels: str, tmp_path: Path) -> None:
    """All within the board's flash and RAM; what is announced is what is found afterwards."""
    hardware = board_named(board, kernels=kernels)
    plan = Joint().plan(network(model), hardware)
    assert hardware.streams_input and any(m.kind == "stream" for m in plan.memories)
    size, runs = checked(model, hardware, plan, tmp_path)
    assert size.flash_bytes <= hardware.flash_bytes and size.sram_bytes <= hardware.sram_bytes
    assert runs.arena_touched_bytes == size.ram_objects["nn_arena"]
    beyond = 24 if kernels == "portable" else 8  # memset saves registers where it sets much
    assert size.stack_bound_bytes - (runs.stack_bytes or 0) <= beyond
    assert size.statics_bytes - size.ram_objects["nn_arena"] <= 32


def one_by_one(op: Operator, graph: Graph) -> bool:
    return isinstance(op, Conv2d) and graph.tensors[op.parameters[0]].shape[1:3] == (1, 1)


@needs_models
@needs_avr
@pytest.mark.slow
def test_a_hundred_inputs_on_a_mega(tmp_path: Path) -> None:
    """The extremes of all inputs are among the frames."""
    graph, hardware = network("kws_ref_model"), load_hardware("arduino_mega")
    plan = Auto().plan(graph, hardware)
    assert dict(plan.notes)[CHOSEN].startswith("joint")
    costs = cost(plan, graph, hardware)
    assert PLAN_BYTES[0] <= costs.arena_bytes <= PLAN_BYTES[1]
    given = frames(graph, COUNT)
    expected = reference((MODELS / "kws_ref_model.tflite").read_bytes(), given)
    size, runs = on_board(tmp_path, graph, hardware, plan, given, expected=expected)
    assert size.sram_bytes <= hardware.sram_bytes
    assert size.ram_objects["nn_arena"] == costs.arena_bytes
    names = [op.name for op in graph.operators]
    functions = dict(zip(runs.functions, runs.function_cycles[0].tolist(), strict=True))
    cycles = dict(of_functions(functions, int(runs.compute_cycles[0]), names))
    pointwise = [op for op in graph.operators if one_by_one(op, graph)]
    assert len(pointwise) == 4
    for op in pointwise:
        assert cycles[op.name] <= POINTWISE_CYCLES_A_MAC * op.macs(graph.tensors), op.name


INSIDE = 1_500_000
"""Parameters whose constants take less than 3 MiB, if all were there for two kernels."""

SEPARATE = MemoryRegion("quadspi", 0x90000000, machines.OUTSIDE_BYTES, "rom", external=True)


def with_all_memory(name: str, row: Row) -> Hardware:
    """The board with all the memory that its simulated machine has; every other one streams."""
    most = machines.DESK_OFFSET
    board = board_named(name, sram_bytes=most, flash_bytes=most)
    board = replace(board, streams_input=ONE_A_CORE.index(name) % 2 == 1)
    if row.parameters < INSIDE:
        return board
    return replace(board, weights_in="external_flash", regions=(*board.regions, SEPARATE))


HELD = [row for row in TABLE if row.parameters < machines.OUTSIDE_BYTES]
TOO_LARGE = {"alexnet", "resnet18", "vgg16"}


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
@pytest.mark.parametrize("strategy", [Joint(), Ordinary()])
@pytest.mark.parametrize("row", HELD, ids=[row.name for row in HELD])
def test_the_zoo(row: Row, strategy: Strategy, tmp_path: Path) -> None:
    """Each network on two cores, by turns."""
    name = ONE_A_CORE[(HELD.index(row) + isinstance(strategy, Joint)) % len(ONE_A_CORE)]
    hardware, graph = with_all_memory(name, row), graph_of(row.name)
    plan = strategy.plan(graph, hardware)
    costs = cost(plan, graph, hardware)
    assert costs.macs_executed <= row.macs  # rows that nothing reads are not made
    size, runs = on_board(tmp_path, graph, hardware, plan, frames(graph, 3)[2:])
    assert size.ram_objects["nn_arena"] == costs.arena_bytes
    assert 0 <= costs.arena_bytes - (runs.arena_touched_bytes or 0) < 0.1 * costs.arena_bytes
