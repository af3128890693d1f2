"""The assembly on a cycle-exact chip equals the integer graph, for every shape it is used for."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.chain import ChainStrategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.single_transpose import SingleTranspose
from pipeline.targets import simavr, toolchain
from pipeline.targets.harness import harness_sources
from pipeline.targets.runs import Runs
from tests.codegen.support import frames, write
from tests.strategies.chains import Chain, mnist
from tests.targets.conftest import load_hardware

pytestmark = pytest.mark.skipif(
    shutil.which("avr-gcc") is None, reason="avr-gcc is not installed: make setup"
)
STACK_BYTES = 64


@pytest.fixture(scope="module", autouse=True)
def simulator(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        simavr.compile_shim(tmp_path_factory.mktemp("shim"))
    except ThimbleError as error:
        pytest.skip(str(error))


def on_chip(
    folder: Path, graph: Graph, plan: Plan, hardware: Hardware, count: int = 3
) -> tuple[toolchain.Size, Runs]:
    """Build, run ``count`` frames, compare every output."""
    write(folder, {**generate(graph, plan, hardware, {}), **harness_sources(hardware)})
    size = toolchain.build(folder, folder / "build", hardware)
    given = frames(graph, count)
    sent = given.astype(np.uint8)
    runs = simavr.run(folder / "build", dataclasses.asdict(size), hardware, sent)
    wanted = graph.outputs(given).reshape(count, -1)
    assert runs.outputs.tolist() == wanted.tolist()
    return size, runs


def uses_assembly(folder: Path, kernel: str) -> bool:
    """Whether the kernel has assembly beside its portable twin."""
    return (folder / "model.c").read_text().count(f"void run_{kernel}_pixel(") == 2


@pytest.mark.parametrize("weights_in", ["sram", "flash"])
@pytest.mark.parametrize(
    "strategy",
    [Herringbone("slots"), Herringbone("contiguous"), SingleTranspose("slots")],
    ids=lambda s: f"{s.name}-{s.layout}",
)
def test_mnist(strategy: ChainStrategy, weights_in: str, tmp_path: Path) -> None:
    graph = mnist().graph()
    hardware = load_hardware(weights_in=weights_in)
    size, runs = on_chip(tmp_path, graph, strategy.plan(graph, hardware), hardware, 2)
    assert size.status == "ok"
    assert runs.stack_bytes is not None and runs.stack_bytes <= STACK_BYTES
    weights = sum(n for name, n in size.ram_objects.items() if name.startswith("nn_weights_"))
    assert weights == (1479 if weights_in == "sram" else 0)
    budget_ms = 60 if strategy.layout == "slots" else 110
    assert runs.compute_cycles.max() <= budget_ms * hardware.clock_hz // 1000
    assert all(uses_assembly(tmp_path, k) for k in ("conv1", "conv2", "conv3", "pool", "logits"))


SHAPES = {
    **{
        f"{lanes} lanes": (lambda lanes=lanes: Chain((5, 5, 4)).conv("a", lanes).dense("d", lanes))
        for lanes in range(1, 12)
    },
    "odd depth": lambda: Chain((6, 6, 3)).conv("a", 5).conv("b", 6, 1).dense("d", 10),
    "large kernel": lambda: Chain((8, 8, 2)).conv("a", 7, 5).dense("d", 3),
    "strides": lambda: Chain((9, 8, 4)).conv("a", 6, stride=(2, 3)).dense("d", 4),
    "dilation": lambda: Chain((9, 9, 2)).conv("a", 4, dilation=(2, 1)).dense("d", 4),
    "overlapping pool": lambda: (
        Chain((7, 7, 5)).maximum("a", kernel=(3, 3), stride=(2, 2)).dense("d", 9)
    ),
    "rows in one piece": lambda: Chain((7, 7, 2)).conv("a", 8).dense("d", 2),
    "torn pixels": lambda: Chain((7, 7, 7)).conv("a", 8, 5).conv("b", 11, 2).dense("d", 2),
}


@pytest.mark.parametrize("weights_in", ["sram", "flash"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, weights_in: str, tmp_path: Path) -> None:
    graph = SHAPES[name]().graph()
    hardware = load_hardware(weights_in=weights_in)
    on_chip(tmp_path, graph, Herringbone("slots").plan(graph, hardware), hardware)
    assert uses_assembly(tmp_path, "a")


def test_torn_pixels_are_tested(tmp_path: Path) -> None:
    graph = SHAPES["torn pixels"]().graph()
    plan = Herringbone("slots").plan(graph, load_hardware())
    code = generate(graph, plan, load_hardware(), {})["model.c"]
    assert "nn_gather+" in code and ".Ltorn" in code


@pytest.mark.parametrize(
    ("name", "chain"),
    {
        "many channels": lambda: Chain((5, 5, 3)).conv("a", 17).dense("d", 13),
        "padding": lambda: Chain((5, 5, 2)).conv("a", 3, padding=(1, 1, 1, 1)).dense("d", 4),
        "bytes": lambda: Chain((5, 5, 2), "uint8").conv("a", 3, dtype="uint8").dense("d", 4),
    }.items(),
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_portable_c_where_there_is_no_assembly(name: str, chain: object, tmp_path: Path) -> None:
    graph = chain().graph()  # type: ignore[operator]
    hardware = load_hardware()
    on_chip(tmp_path, graph, Ordinary("slots").plan(graph, hardware), hardware, 2)
    assert not uses_assembly(tmp_path, "a")


def test_twin_on_the_chip(tmp_path: Path) -> None:
    """-DNN_PORTABLE compiles the twin where assembly is the default: 16-bit int, same outputs."""
    graph = Chain((8, 8, 1), "uint8").average("p").conv("a", 5).dense("d", 3).graph()
    hardware = load_hardware()
    tools = dataclasses.replace(
        hardware.toolchain, flags=(*hardware.toolchain.flags, "-DNN_PORTABLE")
    )
    plan = Herringbone("slots").plan(graph, hardware)
    twin = dataclasses.replace(hardware, toolchain=tools)
    slow = on_chip(tmp_path / "twin", graph, plan, twin)[1]
    fast = on_chip(tmp_path / "assembly", graph, plan, hardware)[1]
    assert slow.compute_cycles.min() > 2 * fast.compute_cycles.max()
