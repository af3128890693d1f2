"""Loops over channels with the kernels of a core with the DSP extension, by their portable twin and
with ASan and UBSan: outputs byte for byte, and the fast kernels are those that run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import MemoryRegion
from pipeline.plan.calibrate import calibrated
from pipeline.plan.cost import cost
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Loop
from pipeline.strategies.base import Strategy
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.support import coarser, core, fast, twin
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.strategies import nets
from tests.strategies.nets import Net
from tests.tiers import quick


def block(seed: int) -> Graph:
    """A convolution that reaches over the edges, then an inverted residual; sizes at random."""
    rng = np.random.default_rng(seed)
    net = Net((int(rng.integers(5, 10)), int(rng.integers(5, 10)), 3), seed)
    x = net.conv("input", int(rng.choice([6, 8, 11])), 3)
    stride = int(rng.choice([1, 2]))
    x = net.inverted(x, int(rng.choice([6, 8, 11])), 5, 3, stride)
    net.dense(net.average(x), 3)
    return net.graph()


BLOCKS = ((7, 0), (4, 1), (6, 2), (0, 0), *product((10, 7, 0), (1, 2)))


@pytest.mark.parametrize(("channels", "seed"), quick(1, BLOCKS, ci=3))
def test_random_blocks(tmp_path: Path, channels: int, seed: int) -> None:
    graph = block(seed)
    plan = Partial(channels=channels).plan(graph, core())
    verify(plan, graph)
    assert any(isinstance(step, Loop) for step in plan.tracks[0].steps)
    native, given = twin(tmp_path, graph, plan), frames(graph, 4, seed)
    equal(native(given), graph.outputs(given))


def test_kernels_of_passes_are_fast(tmp_path: Path) -> None:
    """Figure 1's block, 32 of its 144 channels at a time and 16 at last. Scratch is in the arena,
    not in the peak."""
    graph = nets.fig1_block()
    plan = Partial(channels=32).plan(graph, core())
    found = cost(plan, graph, core())
    assert found.arena_bytes > found.pmu_bytes == 13 * 13 * (24 + 4 * 24 + 2 * 32)
    native, given = twin(tmp_path, graph, plan), frames(graph, 4)
    equal(native(given), graph.outputs(given))
    assert fast(native, "conv2d") == fast(native, "depthwise") == 1


@pytest.mark.ci
def test_without_room_for_scratch(tmp_path: Path) -> None:
    """Slower kernels, the same outputs."""
    graph = nets.fig1_block()
    small = core(sram_bytes=13 * 13 * (24 + 4 * 24 + 2 * 32) + 100)
    plan = Partial(channels=32).plan(graph, small)
    assert not any(buffer.role == "scratch" for buffer in plan.buffers)
    assert cost(plan, graph, small).arena_bytes <= small.sram_bytes
    native, given = twin(tmp_path, graph, plan), frames(graph, 2)
    equal(native(given), graph.outputs(given))


@pytest.mark.parametrize("strategy", [Ordinary(), Partial()])
def test_room_outside_of_the_chip(strategy: Strategy) -> None:
    """Scratch where the arena is: little SRAM does not matter."""
    graph, outside = nets.fig1_block(), MemoryRegion("sdram", 0xC0000000, 1 << 20, external=True)
    board = replace(core(sram_bytes=4096), activations_in="sdram", regions=(outside,))
    assert any(buffer.role == "scratch" for buffer in strategy.plan(graph, board).buffers)


@pytest.mark.parametrize(("bits", "channels"), quick(0, [(8, 12), (8, 1), (16, 36), (16, 1)], ci=3))
def test_rounded_sums(tmp_path: Path, bits: int, channels: int) -> None:
    graph = nets.fig1_block()
    strategy = Partial(accumulator_bits=bits, channels=channels)  # type: ignore[arg-type]
    plan = calibrated(strategy.plan(graph, core()), graph, frames(graph, 2, 1))
    plan = coarser(plan, 5)
    given = frames(graph, 3)
    expected = np.stack([interpret(plan, graph, frame).output for frame in given])
    native = twin(tmp_path, graph, plan)
    equal(native(given), expected)
    assert ("a window in registers" in native.files["model.c"]) == (channels == 1)


ENTRANCES = ((0, 1), (4, 3), *((seed, 1 + seed % 3) for seed in range(1, 60)))


@pytest.mark.parametrize(("seed", "channels"), quick(1, ENTRANCES, ci=1))
def test_few_channels_of_an_entrance(tmp_path: Path, seed: int, channels: int) -> None:
    """One, two or three at a time, where a word of four would hold others."""
    graph = nets.entrance(seed)
    plan = Partial(accumulator_bits=8, channels=channels).plan(graph, core())
    plan = calibrated(plan, graph, frames(graph, 2, 1))
    verify(plan, graph)
    given = frames(graph, 3)
    expected = np.stack([interpret(plan, graph, frame).output for frame in given])
    native = twin(tmp_path, graph, plan)
    equal(native(given), expected, **native.about)
    if channels == 1:
        kinds = (
            "row by row of the kernel",
            "1 channel at a time, each with",
            "a window in registers",
        )
        assert all(kind in native.files["model.c"] for kind in kinds)


SUMS = ((8, 1, 0), (8, 3, 1), (16, 1, 2), *((8, 1, seed) for seed in range(3, 60)))


@pytest.mark.parametrize(("bits", "channels", "seed"), quick(1, SUMS, ci=2))
def test_sums_over_windows(tmp_path: Path, bits: int, channels: int, seed: int) -> None:
    """Beyond edges, of odd numbers of channels and of pixels: nothing is added twice."""
    graph = nets.residual(seed)
    strategy = Partial(accumulator_bits=bits, channels=channels)  # type: ignore[arg-type]
    plan = strategy.plan(graph, core())
    sums = dict(plan.notes)["accumulate_layers"]
    plan = calibrated(plan, graph, frames(graph, 2, 1))
    verify(plan, graph)
    given = frames(graph, 3)
    expected = np.stack([interpret(plan, graph, frame).output for frame in given])
    native = twin(tmp_path, graph, plan)
    equal(native(given), expected, **native.about)
    kernels = [line for line in native.files["model.c"].splitlines() if line.startswith("/* ")]
    kind = "a window in registers" if channels == 1 else "pixels and 2 channels"
    assert sum("partial, " in line and kind in line for line in kernels) == (bits == 8)
    assert channels > 1 or sum("one channel at a time, its columns in" in line for line in kernels)
    assert sums == 1  # with 16 bits it is the dense layer
