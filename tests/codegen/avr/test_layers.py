"""Kernels in assembly for bytes, and portable ones: their C gives the graph's outputs natively and
on the simulated chip (integers of 16 bits, constants in flash), within the announced stack."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import LARGEST_ON_AVR, LPM_BYTES, Hardware
from pipeline.kernels import Form, choose
from pipeline.kernels.int8 import word
from pipeline.kernels.lacks import lacks
from pipeline.plan.vocabulary import Compute, Plan, Track
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, elf
from tests.codegen.cortex_m.support import kernels
from tests.codegen.int8.loops import Kind, scattered
from tests.codegen.int8.support import apart
from tests.codegen.int8.test_plans import chain
from tests.codegen.support import checked, on_board, write
from tests.graphs import Chained, Net
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import built, generated
from tests.tiers import quick

MEGA = load_hardware("arduino_mega")

OWN = {"avr.conv2d", "avr.depthwise", "avr.dense", "int8.looked_up_add"}
"""Kernels that take all of ``layers``."""


def least_zero(net: Net) -> None:
    """As after a ReLU: the last output's zero point is its least value."""
    last = net.tensors[net.last]
    net.tensors[net.last] = replace(last, zero_point=last.dtype.minimum)


def layers(seed: int) -> Graph:
    """Every kind, with one part of a row and several, clips, and shifts on both sides of a byte."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    net = Net((6, int(rng.integers(3, 15)), 3), rng, dtype, name="layers")
    net.conv(5, (3, 2), dilation=(1, 2))
    least_zero(net)
    net.depthwise(stride=(1, int(rng.integers(1, 3))))
    least_zero(net)
    net.depthwise((2, 3), dilation=(2, 1))
    net.depthwise((2, 1), padding=(0, 0, 0, 0))
    left = net.conv(9, (1, 1))
    net.plus(left, net.conv(9, (1, 1)))
    return Chained(net).conv(7, (3, 3), stride=(2, 1), per_channel=False).dense(11).dense(4).graph()


def chosen(graph: Graph) -> list[str]:
    """Choose a kernel for each operator, all of it at once."""
    return [choose(Form.whole(op, graph), MEGA).name for op in graph.operators]


def separable(seed: int = 0) -> Graph:
    """Pointwise and depthwise layers, whose rows may lie over each other."""
    net = Net((9, 5, 2), np.random.default_rng(seed), name="separable")
    net.conv(8, (3, 3))
    for _ in range(2):
        least_zero(net)
        net.depthwise()
        net.conv(8, (1, 1))
    return Chained(net).dense(4).graph()


@pytest.mark.parametrize("seed", quick(0, range(20), ci=1))
def test_the_same_in_c(seed: int, tmp_path: Path) -> None:
    graph = layers(seed)
    assert set(chosen(graph)) == OWN
    checked(tmp_path, graph, Ordinary().plan(graph, MEGA), MEGA)


@needs_avr
@pytest.mark.parametrize("seed", quick(1, range(20), ci=1))
def test_on_the_chip(seed: int, tmp_path: Path) -> None:
    graph = layers(seed)
    plan = Ordinary().plan(graph, MEGA)
    assert set(kernels(plan).values()) == OWN
    on_board(tmp_path, graph, MEGA, plan)


@needs_avr
@pytest.mark.parametrize("seed", quick(0, range(6), ci=1))
def test_rows_over_each_other(seed: int, tmp_path: Path) -> None:
    graph = separable(seed)
    plan = Joint().plan(graph, MEGA)
    assert {"avr.conv2d", "avr.depthwise"} <= set(kernels(plan).values())
    checked(tmp_path / "native", graph, plan, MEGA)
    on_board(tmp_path, graph, MEGA, plan)


def linked(*names: str) -> Hardware:
    """A Mega, with what nothing uses in its program."""
    flags = (*MEGA.toolchain.flags, *(f"-Wl,-u,{name}" for name in names))
    return replace(MEGA, toolchain=replace(MEGA.toolchain, flags=flags))


def symbol(folder: Path, name: str) -> elf.Symbol:
    program = elf.read(folder / "build" / "firmware.elf", MEGA.toolchain.objdump)
    return next(each for each in program.symbols if each.name == name)


OTHERS = ("conv0", "conv1", "conv2", "conv3", "conv4", "conv5", "conv7", "dense8", "dense9")
CUTS = [("conv1", 4), *((name, 0) for name in OTHERS)]
"""The first is within weights of a row above the image, which are passed over."""


@needs_avr
@pytest.mark.parametrize("layer, offset", quick(0, CUTS, ci=3))
def test_weights_across_64_kib(layer: str, offset: int, tmp_path: Path) -> None:
    """The first 64 KiB of flash end within a layer's weights, ``offset`` or half of them on."""
    graph, name = layers(3), f"nn_far_{layer}_stream"
    built(tmp_path / "before", graph, MEGA)
    before = symbol(tmp_path / "before", name)
    length = LPM_BYTES - before.address - (offset or before.bytes // 2)
    padding = (
        '__asm__(".pushsection .lowtext.nn,\\"a\\",@progbits\\n.global nn_far_a\\n"'
        f' "nn_far_a: .space {length // 2 * 2}\\n.popsection");\n'
    )
    on_board(tmp_path, graph, linked("nn_far_a"), extra={"a.c": padding})
    found = symbol(tmp_path, name)
    assert found.address < LPM_BYTES < found.address + found.bytes


@needs_avr
@pytest.mark.ci
def test_more_weights_than_an_array_in_c_holds(tmp_path: Path) -> None:
    net = Chained(Net((2, 2, 64), np.random.default_rng(0), name="large"))
    graph = net.conv(64, (3, 3)).dense(3).graph()
    checked(tmp_path / "native", graph, Ordinary().plan(graph, MEGA), MEGA)
    size, _ = on_board(tmp_path, graph, MEGA)
    assert size.flash_objects["nn_far_conv0_stream"] > LARGEST_ON_AVR


def test_what_must_be_near_and_is_too_large_is_one_line() -> None:
    """No assembly takes windows of 1,152 elements."""
    net = Net((2, 2, 128), np.random.default_rng(0), name="large")
    graph = Chained(net).conv(30, (3, 3)).graph()
    plan = Ordinary().plan(graph, MEGA)
    with pytest.raises(ThimbleError, match=r"conv0 has 34,560 B of constants in one piece"):
        generate(graph, plan, MEGA, {})
    said = "conv0 (Conv2d): an array on an AVR has at most 32,767 B, its weights are more"
    assert lacks(plan, graph, MEGA) == said
    net = Net((60, 61, 4), np.random.default_rng(0), name="large result")
    net.conv(3, (1, 1))
    graph, roomy = net.graph(), replace(MEGA, sram_bytes=1 << 16)
    assert lacks(Ordinary().plan(graph, roomy), graph, roomy) == "", "bytes lie anywhere"


@needs_avr
@pytest.mark.ci
def test_more_than_lpm_reaches_is_infeasible(tmp_path: Path) -> None:
    graph = layers(3)
    text = (
        '__asm__(".pushsection .progmem.data,\\"a\\",@progbits\\n.global nn_a\\n"'
        f' "nn_a: .space {LPM_BYTES}\\n.type nn_a, @object\\n.size nn_a, {LPM_BYTES}\\n'
        '.popsection");\n'
    )
    sources = generated(tmp_path, graph, MEGA, Ordinary().plan(graph, MEGA))
    size = builds.build(write(sources, {"a.c": text}), tmp_path / "build", linked("nn_a"))
    assert size.status == "infeasible" and "LPM" in size.resource
    assert LPM_BYTES < size.needed_bytes < LPM_BYTES + 10_000, "streams of weights are not counted"


def test_what_lpm_reads_is_not_far() -> None:
    """On an Uno all of flash is."""
    uno, graph = load_hardware("arduino", weights_in="flash"), layers(0)
    source = generate(graph, Ordinary().plan(graph, uno), uno, {})["model.c"]
    assert "nn_far_" not in source and "elpm" not in source and "lpm r20, Z+" in source


def test_a_row_that_would_be_overwritten_is_refused() -> None:
    """Six pixels of eight are written before the others are read."""
    graph = Chained(Net((1, 8, 4), np.random.default_rng(0), name="row")).conv(4, (1, 3)).graph()
    plan = Ordinary().plan(graph, MEGA)
    held = {b.name: b for b in plan.buffers if b.role == "activation"}
    base = min(b.map.base for b in held.values())
    moved = tuple(
        replace(b, map=replace(b.map, base=base)) if b.name in held else b for b in plan.buffers
    )
    with pytest.raises(ThimbleError, match=r"avr.conv2d write its output .* before it is read"):
        generate(graph, replace(plan, buffers=moved), MEGA, {})


UNO = load_hardware(weights_in="flash", streams_input=False)


def portable_network() -> Graph:
    net = Net((6, 6, 2), np.random.default_rng(3), name="small")
    start = net.conv(4)
    Chained(net).plus(net.depthwise(), start).lookup().maximum((2, 2), stride=(2, 2))
    return Chained(net).conv(5, (1, 1)).times(net.last, net.mean((3, 3))).dense(4).softmax().graph()


def portable(plan: Plan, graph: Graph) -> Plan:
    """All steps by the kernels for bytes."""
    steps = tuple(
        replace(step, kernel=f"int8.{word(graph.operator(step.op))}")
        if isinstance(step, Compute)
        else step
        for step in plan.tracks[0].steps
    )
    return replace(plan, tracks=(Track("cpu", steps),))


def strewn(kind: Kind) -> tuple[Graph, Plan]:
    graph = portable_network()
    return graph, scattered(apart(graph), graph, kind, 0)


CASES: dict[str, Callable[[], tuple[Graph, Plan]]] = {
    "ordinary": lambda: (portable_network(), Ordinary().plan(portable_network(), UNO)),
    "in place": lambda: (chain(3), Herringbone("slots").plan(chain(3), UNO)),
    "scattered": lambda: strewn("scattered"),
    "in one piece": lambda: (chain(3), Herringbone("contiguous").plan(chain(3), UNO)),
    "rows": lambda: strewn("rows"),
}


@needs_avr
@pytest.mark.parametrize("name", quick(3, CASES))
def test_portable_kernels(name: str, tmp_path: Path) -> None:
    graph, plan = CASES[name]()
    plan = portable(plan, graph)
    native = checked(tmp_path / "native", graph, plan, UNO)
    assert "nn_flash8(" in native.files["model.c"] and "NN_FLASH =" in native.files["model.c"]
    on_board(tmp_path, graph, UNO, plan)
