"""Kernels in assembly for bytes: their C gives the graph's outputs natively, and they give them on
the simulated chip, with the stack that was announced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import artifacts
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import LARGEST_ON_AVR, LPM_BYTES, Hardware
from pipeline.kernels.lacks import lacks
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, elf, simavr
from pipeline.targets.harness import harness_sources
from pipeline.targets.toolchain import Size
from tests.codegen.avr.support import MEGA, OWN, chosen, kernels, layers, least_zero
from tests.codegen.int8.support import Native, frames
from tests.comparing import equal
from tests.graphs import Net
from tests.targets.conftest import load_hardware, needs_avr
from tests.tiers import quick


def separable(seed: int = 0) -> Graph:
    """Pointwise and depthwise layers, whose rows may lie over each other."""
    net = Net((9, 5, 2), np.random.default_rng(seed), name="separable")
    net.conv(8, (3, 3))
    for _ in range(2):
        least_zero(net)
        net.depthwise()
        net.conv(8, (1, 1))
    net.dense(4)
    return net.graph()


def given(graph: Graph, files: Mapping[str, str], plan: Plan, folder: Path) -> None:
    images = frames(graph, 4)
    native = Native(folder / "native", graph, plan, files=files)
    equal(native(images), graph.outputs(images))


def built(files: Mapping[str, str], folder: Path, hardware: Hardware = MEGA) -> Size:
    for name, content in {**files, **harness_sources(hardware)}.items():
        artifacts.write_text(folder / "generated" / name, content)
    return builds.build(folder / "generated", folder / "build", hardware)


def on_chip(graph: Graph, size: Size, folder: Path) -> None:
    images = frames(graph, 3)
    expected = graph.outputs(images)
    data = images.astype(str(graph.tensors[graph.input].dtype)).view(np.uint8)
    runs = simavr.run(folder / "build", vars(size), MEGA, data)
    equal(runs.outputs.view(np.int8).reshape(expected.shape), expected)
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


@pytest.mark.parametrize("seed", quick(0, range(20), ci=1))
def test_the_same_in_c(seed: int, tmp_path: Path) -> None:
    graph = layers(seed)
    assert set(chosen(graph)) == OWN
    plan = Ordinary().plan(graph, MEGA)
    given(graph, generate(graph, plan, MEGA, {}), plan, tmp_path)


@needs_avr
@pytest.mark.parametrize("seed", quick(1, range(20), ci=1))
def test_on_the_chip(seed: int, tmp_path: Path) -> None:
    graph = layers(seed)
    plan = Ordinary().plan(graph, MEGA)
    assert kernels(plan) == OWN
    on_chip(graph, built(generate(graph, plan, MEGA, {}), tmp_path), tmp_path)


@needs_avr
@pytest.mark.parametrize("seed", quick(0, range(6), ci=1))
def test_rows_over_each_other(seed: int, tmp_path: Path) -> None:
    graph = separable(seed)
    plan = Joint().plan(graph, MEGA)
    assert kernels(plan) >= {"avr.conv2d", "avr.depthwise"}
    files = generate(graph, plan, MEGA, {})
    given(graph, files, plan, tmp_path)
    on_chip(graph, built(files, tmp_path), tmp_path)


OTHERS = ("conv0", "conv1", "conv2", "conv3", "conv4", "conv5", "conv7", "dense8", "dense9")
CUTS = [("conv1", 4), *((name, 0) for name in OTHERS)]
"""The first is within weights of a row above the image, which are passed over."""


@needs_avr
@pytest.mark.parametrize("layer, offset", quick(0, CUTS, ci=3))
def test_weights_across_64_kib(layer: str, offset: int, tmp_path: Path) -> None:
    """The first 64 KiB of flash end within a layer's weights, ``offset`` or half of them on."""
    graph, name = layers(3), f"nn_far_{layer}_stream"
    files = generate(graph, Ordinary().plan(graph, MEGA), MEGA, {})
    built(files, tmp_path / "before")
    before = symbols(tmp_path / "before")[name]
    length = LPM_BYTES - before.address - (offset or before.bytes // 2)
    padding = (
        '__asm__(".pushsection .lowtext.nn,\\"a\\",@progbits\\n.global nn_far_a\\n"'
        f' "nn_far_a: .space {length // 2 * 2}\\n.popsection");\n'
    )
    kept = replace(MEGA.toolchain, flags=(*MEGA.toolchain.flags, "-Wl,-u,nn_far_a"))
    padded = {"a.c": padding, **files}
    size = built(padded, tmp_path, replace(MEGA, toolchain=kept))
    found = symbols(tmp_path)[name]
    assert found.address < LPM_BYTES < found.address + found.bytes
    assert size.status == "ok"
    on_chip(graph, size, tmp_path)


@needs_avr
@pytest.mark.ci
def test_more_weights_than_an_array_in_c_holds(tmp_path: Path) -> None:
    net = Net((2, 2, 64), np.random.default_rng(0), name="large")
    net.conv(64, (3, 3))
    net.dense(3)
    graph = net.graph()
    plan = Ordinary().plan(graph, MEGA)
    files = generate(graph, plan, MEGA, {})
    given(graph, files, plan, tmp_path)
    size = built(files, tmp_path)
    assert size.flash_objects["nn_far_conv0_stream"] > LARGEST_ON_AVR
    on_chip(graph, size, tmp_path)


def test_what_must_be_near_and_is_too_large_is_one_line() -> None:
    """No assembly takes windows of 1,152 elements."""
    net = Net((2, 2, 128), np.random.default_rng(0), name="large")
    net.conv(30, (3, 3))
    graph = net.graph()
    plan = Ordinary().plan(graph, MEGA)
    with pytest.raises(ThimbleError, match=r"conv0 has 34,560 B of constants in one piece"):
        generate(graph, plan, MEGA, {})
    said = "conv0 (Conv2d): an array on an AVR has at most 32,767 B, its weights are more"
    assert lacks(plan, graph, MEGA) == said


@needs_avr
@pytest.mark.ci
def test_more_than_lpm_reaches_is_infeasible(tmp_path: Path) -> None:
    graph = layers(3)
    text = (
        '__asm__(".pushsection .progmem.data,\\"a\\",@progbits\\n.global nn_a\\n"'
        f' "nn_a: .space {LPM_BYTES}\\n.type nn_a, @object\\n.size nn_a, {LPM_BYTES}\\n'
        '.popsection");\n'
    )
    kept = replace(MEGA.toolchain, flags=(*MEGA.toolchain.flags, "-Wl,-u,nn_a"))
    files = generate(graph, Ordinary().plan(graph, MEGA), MEGA, {})
    size = built({"a.c": text, **files}, tmp_path, replace(MEGA, toolchain=kept))
    assert size.status == "infeasible" and "LPM" in size.resource
    assert LPM_BYTES < size.needed_bytes < LPM_BYTES + 10_000, "streams of weights are not counted"


def test_what_lpm_reads_is_not_far() -> None:
    """On an Uno all of flash is."""
    uno, graph = load_hardware("arduino", weights_in="flash"), layers(0)
    source = generate(graph, Ordinary().plan(graph, uno), uno, {})["model.c"]
    assert "nn_far_" not in source and "elpm" not in source and "lpm r20, Z+" in source


def symbols(folder: Path) -> dict[str, elf.Symbol]:
    program = elf.read(folder / "build" / "firmware.elf", MEGA.toolchain.objdump)
    return {each.name: each for each in program.symbols}


def test_a_row_that_would_be_overwritten_is_refused() -> None:
    """Six pixels of eight are written before the others are read."""
    net = Net((1, 8, 4), np.random.default_rng(0), name="row")
    net.conv(4, (1, 3))
    graph = net.graph()
    plan = Ordinary().plan(graph, MEGA)
    held = {b.name: b for b in plan.buffers if b.role == "activation"}
    base = min(b.map.base for b in held.values())
    moved = tuple(
        replace(b, map=replace(b.map, base=base)) if b.name in held else b for b in plan.buffers
    )
    with pytest.raises(ThimbleError, match=r"avr.conv2d write its output .* before it is read"):
        generate(graph, replace(plan, buffers=moved), MEGA, {})
