"""Fast kernels on simulated cores: their assembly gives the graph's outputs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.plan.calibrate import calibrated
from pipeline.plan.forms import forms
from pipeline.plan.interpret import interpret
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.base import LAYOUTS, Layout
from pipeline.strategies.chain import ChainStrategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.support import coarser
from tests.codegen.int8.support import frames
from tests.codegen.int8.test_in_place import chain
from tests.comparing import equal
from tests.graphs import Net, random_graph
from tests.strategies.chains import IN_PLACE
from tests.strategies.nets import entrance, fig1_block, residual
from tests.strategies.test_branches import mobile
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

pytestmark = needs_arm
BOARDS = ("nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi")
"""Cortex-M4, M7 and M33."""


def network(seed: int) -> Graph:
    """All kinds of fast layers, of sizes that nothing divides."""
    net = Net((11, 9, 3), np.random.default_rng(seed), name="layers")
    net.conv(13, (3, 3), stride=(1, 2))
    net.depthwise((3, 3))
    start = net.conv(17, (1, 1))
    net.plus(net.conv(17, (3, 3)), start)
    net.maximum((3, 2), stride=(1, 1), padding=(1, 1, 1, 0))
    net.depthwise((5, 3), stride=(2, 2), padding=(1, 2, 1, 1))
    net.mean((2, 2), stride=(1, 1), padding=(1, 0, 0, 1))
    net.conv(10, (2, 3), stride=(2, 1))
    net.dense(40)
    net.dense(11)
    return net.graph()


def check(graph: Graph, board: str, folder: Path) -> None:
    hardware = board_named(board)
    size = built(folder, graph, hardware)
    given = frames(graph, 3)
    runs = simulated(folder, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


@pytest.mark.parametrize("board", quick(1, BOARDS))
def test_every_kind_of_layer(board: str, tmp_path: Path) -> None:
    check(network(BOARDS.index(board)), board, tmp_path)


def check_channel_by_channel(
    graph: Graph, board: str, folder: Path, bits: Literal[8, 16] = 8
) -> None:
    """Sums of few bits of one channel after the other, as the interpreter has them."""
    hardware = board_named(board)
    plan = Partial(accumulator_bits=bits, channels=1).plan(graph, hardware)
    plan = calibrated(plan, graph, frames(graph, 2, 1))
    if bits == 16:
        plan = coarser(plan, 5)
    size = built(folder, graph, hardware, plan)
    given = frames(graph, 3)
    runs = simulated(folder, graph, hardware, size, given)
    expected = np.stack([interpret(plan, graph, frame).output for frame in given])
    equal(outputs(graph, runs), expected)


@pytest.mark.parametrize(
    ("network", "board"),
    quick(
        1, zip((residual, entrance, residual, entrance), (*BOARDS, BOARDS[0]), strict=True), ci=2
    ),
)
def test_channel_by_channel(network: Callable[[int], Graph], board: str, tmp_path: Path) -> None:
    check_channel_by_channel(network(BOARDS.index(board)), board, tmp_path)


@pytest.mark.parametrize("graph", quick(1, [residual(25), entrance(11)]))
def test_without_a_loop_and_with_many_values(graph: Graph, tmp_path: Path) -> None:
    """Of few channels the innermost loop is straight; of many strips values lie on the stack."""
    check_channel_by_channel(graph, "nucleo_f446re", tmp_path)


@pytest.mark.ci
def test_sums_of_16_bits(tmp_path: Path) -> None:
    check_channel_by_channel(fig1_block(), "nucleo_f446re", tmp_path, 16)


@pytest.mark.slow
@pytest.mark.parametrize("network", [residual, entrance])
def test_many_channel_by_channel(network: Callable[[int], Graph], tmp_path: Path) -> None:
    for seed in range(40):
        check_channel_by_channel(network(seed), "nucleo_f446re", tmp_path / f"{seed}")


@pytest.mark.parametrize("layout", quick(1, LAYOUTS))
def test_in_place(layout: Layout, tmp_path: Path) -> None:
    """Tables, peels and permutations on the core that they are for."""
    graph, hardware = chain(3), board_named("nucleo_f446re")
    plan = Herringbone(layout=layout).plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    given = frames(graph, 3)
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))


@pytest.mark.ci
@pytest.mark.parametrize("strategy", quick(1, IN_PLACE[::-1], ci=0))
def test_branches_in_place(strategy: type[ChainStrategy], tmp_path: Path) -> None:
    """Inverted blocks, two of them with branches."""
    graph, hardware = mobile(), board_named("nucleo_f446re")
    plan = strategy().plan(graph, hardware)
    assert max(form.steps for form in forms(plan).values()) > 1
    size = built(tmp_path, graph, hardware, plan)
    given = frames(graph, 3)
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(5000, 5300, 100))
def test_random_networks_on_a_cortex_m4(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 100):
        check(random_graph(seed), "nucleo_f446re", tmp_path / f"{seed}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_random_layers_on_a_cortex_m4(kind: str, tmp_path: Path) -> None:
    for seed in range(5000, 5050):
        graph = KINDS[kind](np.random.default_rng(seed))
        check(graph, "nucleo_f446re", tmp_path / f"{seed}")


@pytest.mark.parametrize("level", quick(1, ["-O0", "-Os", "-Og", "-O3"], ci=1))
def test_other_options_of_the_compiler(level: str, tmp_path: Path) -> None:
    """Whoever copies the C chooses them; without optimization there are too few registers for the
    assembly, and the portable twin is compiled."""
    hardware = board_named("nucleo_f446re")
    sequel = residual(0)
    loops = Partial(accumulator_bits=8, channels=1).plan(sequel, hardware)
    loops = calibrated(loops, sequel, frames(sequel, 2, 1))
    for graph, plan in ((network(0), None), (sequel, loops)):
        check_options(graph, plan or Ordinary().plan(graph, hardware), level, tmp_path)


def check_options(graph: Graph, plan: Plan, level: str, tmp_path: Path) -> None:
    hardware = board_named("nucleo_f446re")
    files = generate(graph, plan, hardware, {})
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    tool = hardware.toolchain
    flags = [flag for flag in tool.flags if not flag.startswith("-O")]
    command = [tool.compiler, *flags, level, "-c", "model.c", "-o", "model.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    listing = subprocess.run(
        [tool.objdump, "-d", "model.o"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert ("smlad" in listing) == (level != "-O0")
