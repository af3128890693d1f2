"""Plans that swap on a simulated Uno, with a modelled SD card on its SPI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.card.image import NAME
from pipeline.codegen.checks import arena_bytes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import cost
from pipeline.plan.fit import fit
from pipeline.plan.verify import verify
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets import card, device, simavr, toolchain
from pipeline.targets.runs import Runs
from pipeline.targets.toolchain import Size
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.strategies.swap.nets import Chain, random_chain
from tests.targets.conftest import needs_avr
from tests.targets.cortex_m import board_named, built, outputs
from tests.tiers import quick

pytestmark = needs_avr


@pytest.fixture(scope="module")
def uno() -> Hardware:
    return board_named("arduino_sd")


def run(folder: Path, graph: Graph, hardware: Hardware, size: Size, count: int) -> Runs:
    given = frames(graph, count).astype(np.int8)
    return simavr.run(folder / "build", vars(size), hardware, given.view(np.uint8))


@pytest.mark.parametrize(
    ("seed", "security"),
    quick(
        1,
        [(3, "none"), (9, "unchecked"), (9, "none"), *((n, "unchecked") for n in (3, 0, 4, 12))],
        ci=2,
    ),
)
def test_computes_what_the_graph_does_in_the_sram_that_it_says(
    tmp_path: Path, uno: Hardware, seed: int, security: Security
) -> None:
    graph, uno = random_chain(seed), replace(uno, card=replace(uno.card, security=security))
    plan = Swap().plan(graph, uno)
    verify(plan, graph)
    size = built(tmp_path, graph, uno, plan)
    assert size.status == "ok" and size.ram_objects["nn_arena"] == arena_bytes(plan)
    assert size.sram_bytes <= fit(plan, cost(plan, graph, uno), uno).needed_bytes <= uno.sram_bytes
    runs = run(tmp_path, graph, uno, size, 2)
    equal(outputs(graph, runs), graph.outputs(frames(graph, 2)))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


def large() -> Graph:
    """Weights of 17 KB, and an input larger than the arena."""
    chain = Chain("net", (20, 20, 4))
    chain.conv(8, 3, 2, 1)
    chain.conv(8, 3, 2, 1)
    chain.dense(80)
    return chain.graph(np.random.default_rng(0))


@pytest.mark.ci
def test_weights_and_maps_that_no_memory_of_the_chip_holds(tmp_path: Path, uno: Hardware) -> None:
    graph = large()
    assert graph.weight_bytes > uno.sram_bytes * 8
    plan = Swap().plan(graph, uno)
    size = built(tmp_path, graph, uno, plan)
    assert size.status == "ok"
    runs = run(tmp_path, graph, uno, size, 2)
    equal(outputs(graph, runs), graph.outputs(frames(graph, 2)))


def rectified() -> Graph:
    """Inputs that are at least their zero point, as behind a ReLU: padded windows of a grey image,
    of several channels, and dense layers, with weights at both ends."""
    chain = Chain("net", (12, 12, 1))
    chain.conv(4, 5, 1, 2)
    chain.maximum(2, 2)
    chain.conv(6, 3)
    chain.dense(12)
    chain.dense(5)
    graph = chain.graph(np.random.default_rng(1))
    weights = graph.constants["dense3.w"]
    weights[0], weights[1] = 127, -128
    tensors = {
        name: tensor if name in graph.constants else replace(tensor, zero_point=-128)
        for name, tensor in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)


@pytest.mark.ci
def test_products_in_assembly(tmp_path: Path, uno: Hardware) -> None:
    """The same answers as the graph's for extreme inputs, too, and what of the cycles is the
    card's."""
    graph = rectified()
    size = built(tmp_path, graph, uno, Swap().plan(graph, uno))
    toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    assert "nn_dot(" in (tmp_path / "generated" / "model.c").read_text()
    given = frames(graph, 4).astype(np.int8)
    given[2], given[3] = 127, -128
    names = [op.name for op in graph.operators]
    target = {"name": "simulate", "images": 4}
    report, arrays = device.measure(
        target, tmp_path / "build", vars(size), uno, given.view(np.uint8), names
    )
    expected = graph.outputs(given.astype(np.int64)).reshape(4, -1)
    for where in ("device", "host"):
        equal(arrays[f"{where}_outputs"].view(np.int8), expected)
    layers, whole = dict(report["layer_cycles"]), report["compute_cycles"]["median"]
    assert set(layers) == {*names, "rest"} and sum(layers.values()) == whole
    assert 0.5 * layers["rest"] < report["card_cycles"] < layers["rest"]
    for op in graph.operators:
        if macs := op.macs(graph.tensors):
            assert layers[op.name] < 120 * macs


@pytest.mark.ci
def test_says_what_is_wrong_with_a_card(tmp_path: Path, uno: Hardware) -> None:
    graph = random_chain(3)
    size = built(tmp_path, graph, uno, Swap().plan(graph, uno))
    image = tmp_path / "build" / NAME
    whole = image.read_bytes()
    for content, said in (
        (bytes(512) + whole[512:], "holds another network"),
        (whole[:-512], "holds another network"),
        (None, "there is no card"),
    ):
        image.unlink() if content is None else image.write_bytes(content)
        with pytest.raises(ThimbleError, match=said):
            run(tmp_path, graph, uno, size, 2)


def test_a_card_takes_the_time_that_the_board_says_besides_the_line(uno: Hardware) -> None:
    read_command, read_block, write_command, write_block = card.cycles(uno)
    assert (read_command, read_block) == (300 * 16, 30 * 16)
    assert (write_command, write_block) == (700 * 16, 30 * 16)
