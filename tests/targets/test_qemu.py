"""Simulated Cortex-M cores: exact outputs, counts that repeat, measured memory; random networks as
whole tensors, row by row, and row by row while the input arrives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import device, protocol, qemu, toolchain
from pipeline.targets.protocol import Command
from tests.codegen.int8.configurations import network
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies import nets
from tests.targets.cortex_m import ONE_A_CORE, board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

pytestmark = [needs_arm, pytest.mark.usefixtures("compiled_once", "no_host")]

GRAPH = network()


@pytest.fixture(scope="module", params=quick(1, ONE_A_CORE))
def on_core(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Board, folder and sizes of one network on one core."""
    hardware = board_named(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    return hardware, folder, built(folder, GRAPH, hardware)


def test_outputs_counts_and_memory(on_core) -> None:
    hardware, folder, size = on_core
    given = frames(GRAPH, 30)  # two processes, the second one's shorter
    runs = simulated(folder, GRAPH, hardware, size, given)
    equal(outputs(GRAPH, runs), GRAPH.outputs(given))
    assert runs.instructions.shape == (30,) and runs.instructions.min() > GRAPH.macs
    again = simulated(folder, GRAPH, hardware, size, given)
    equal(again.instructions, runs.instructions)
    # the deepest path is taken by each inference: the bound is the depth, or nearly
    assert size.stack_bound_bytes * 0.7 <= (runs.stack_bytes or 0) <= size.stack_bound_bytes
    assert runs.arena_touched_bytes == size.ram_objects["nn_arena"] <= size.statics_bytes
    assert size.sram_bytes == size.statics_bytes + size.stack_bound_bytes
    assert "nn_invoke" in size.stack_path


def test_the_firmware_says_the_same_of_its_stack(on_core) -> None:
    hardware, folder, size = on_core
    core = qemu.Core(folder / "build", hardware, vars(size))
    image = frames(GRAPH, 2)[0].astype(np.int8).tobytes()
    stream = protocol.encode(Command.INFER, image) + protocol.encode(Command.REPORT)
    replies, memory = core.exchange(stream)
    report = protocol.report(protocol.accept(replies[1], Command.REPORT))
    assert report.stack_bytes == qemu._stack(memory, vars(size))
    assert len(memory) == hardware.sram_bytes


@pytest.mark.ci
def test_the_report_of_stage_simulate(tmp_path: Path) -> None:
    hardware = board_named("nucleo_f446re")
    size = built(tmp_path, GRAPH, hardware)
    toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    images = frames(GRAPH, 4).astype(np.int8).view(np.uint8)
    target = {"name": "simulate", "images": 3}
    report, arrays = device.measure(target, tmp_path / "build", vars(size), hardware, images)
    counts = report["modelled_cycles"]
    assert counts["instructions"] < counts["compute_instructions"] and report["images"] == 3
    assert "instructions" not in report, "of nn_invoke alone"
    assert report["sram_bytes"] == size.statics_bytes + report["stack_bytes"]
    equal(arrays["device_outputs"], arrays["host_outputs"][:3])
    none, _ = device.measure(
        target | {"images": 0}, tmp_path / "build", vars(size), hardware, images
    )
    assert none["images"] == 0 and "modelled_cycles" not in none


def test_images_of_another_size_are_one_line(on_core) -> None:
    hardware, folder, size = on_core
    with pytest.raises(ThimbleError, match=r"takes 192 B an image, the test set has 5 values"):
        qemu.run(folder / "build", vars(size), hardware, np.zeros((1, 5), np.uint8))


def check(seed: int, folder: Path) -> None:
    """Rows, of every other network while the input arrives, and of every fourth whole tensors."""
    name, graph = ONE_A_CORE[seed // 2 % 4], random_graph(seed)
    board = board_named(name)
    strategies = [(Joint(), seed % 2 == 1)] + [(Ordinary(), False)] * (seed % 4 == 0)
    for strategy, streams in strategies:
        hardware = replace(board, streams_input=streams)
        plan, place = strategy.plan(graph, hardware), folder / f"{seed} {strategy.name}"
        size = built(place, graph, hardware, plan)
        given = frames(graph, 3, seed)
        runs = simulated(place, graph, hardware, size, given)
        equal(outputs(graph, runs), graph.outputs(given), seed=seed, board=name, plan=plan.strategy)
        assert (runs.stack_bytes or 0) <= size.stack_bound_bytes, (seed, name)


@pytest.mark.parametrize(
    ("first", "count"), quick(1, [(0, 1), (1, 3), *((n, 50) for n in range(0, 300, 50))], ci=1)
)
def test_random_networks(first: int, count: int, tmp_path: Path) -> None:
    for seed in range(first, first + count):
        check(seed, tmp_path)


@pytest.mark.parametrize("name", quick(0, ("nucleo_f446re", "nucleo_g0b1re"), ci=1))
def test_rows_are_made_while_others_arrive(name: str, tmp_path: Path) -> None:
    """Little is left to do after the last byte, and the memory is as announced."""
    graph, left = nets.ds_cnn((16,) * 3), {}
    given = frames(graph, 3)
    for streams in (False, True):
        hardware = board_named(name, streams_input=streams)
        plan, folder = Joint().plan(graph, hardware), tmp_path / str(streams)
        size = built(folder, graph, hardware, plan)
        runs = simulated(folder, graph, hardware, size, given)
        equal(outputs(graph, runs), graph.outputs(given))
        assert runs.arena_touched_bytes == size.ram_objects["nn_arena"]
        left[streams] = int(runs.instructions.max())
    assert left[True] < 0.4 * left[False]
