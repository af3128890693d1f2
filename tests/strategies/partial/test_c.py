"""Partial execution as C on this computer, by host kernels and a DSP core's twins, to the byte."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import MemoryRegion
from pipeline.plan.calibrate import calibrated
from pipeline.plan.cost import cost
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Loop, Plan
from pipeline.search.moves.channels import ByChannels, able, loops
from pipeline.strategies.base import Strategy
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.support import coarser, core, fast
from tests.codegen.int8.support import frames, host
from tests.strategies import nets, zoo
from tests.strategies.nets import Net
from tests.strategies.partial.test_plans import view_of
from tests.strategies.proving import as_c, exact
from tests.tiers import quick

FIGURE_1 = nets.fig1_block()
COARSE = 1100
"""Steps with which the sum of any two products fits 8 bits."""


def passes(plan: Plan) -> list[int]:
    return [step.count for step in plan.tracks[0].steps if isinstance(step, Loop)]


def partial(bits: int, channels: int = 0) -> Partial:
    return Partial(accumulator_bits=bits, channels=channels)  # type: ignore[arg-type]


def block(seed: int) -> Graph:
    """A convolution that reaches over the edges, then an inverted residual; sizes at random."""
    rng = np.random.default_rng(seed)
    net = Net((int(rng.integers(5, 10)), int(rng.integers(5, 10)), 3), seed)
    x = net.conv("input", int(rng.choice([6, 8, 11])), 3)
    x = net.inverted(x, int(rng.choice([6, 8, 11])), 5, 3, int(rng.choice([1, 2])))
    net.dense(net.average(x), 3)
    return net.graph()


BLOCKS = ((7, 0), (4, 1), (6, 2), (0, 0), *product((10, 7, 3, 1, 0), (1, 2)))


@pytest.mark.parametrize(("channels", "seed"), quick(1, BLOCKS, ci=3))
def test_random_blocks(tmp_path: Path, channels: int, seed: int) -> None:
    graph = block(seed)
    for board in (core(), host()):
        plan = Partial(channels=channels).plan(graph, board)
        assert passes(plan) and verify(plan, graph)
        as_c(tmp_path / board.core, graph, plan, board, seed)


@pytest.mark.parametrize(("portable", "channels"), quick(2, [(False, 32), (True, 50), (True, 0)]))
def test_figure_1(tmp_path: Path, portable: bool, channels: int) -> None:
    """32 of 144 channels at a time, 16 at last: passes are fast; scratch is not in the peak."""
    board = host() if portable else core()
    plan = Partial(channels=channels).plan(FIGURE_1, board)
    native = as_c(tmp_path, FIGURE_1, plan, board)
    if not portable:
        found = cost(plan, FIGURE_1, board)
        assert found.arena_bytes > found.pmu_bytes == 13 * 13 * (24 + 4 * 24 + 2 * 32)
        assert fast(native, "conv2d") == fast(native, "depthwise") == 1


@pytest.mark.ci
def test_without_room_for_scratch(tmp_path: Path) -> None:
    """Slower kernels, the same outputs; rows that are overwritten are kept there."""
    small = core(sram_bytes=13 * 13 * (24 + 4 * 24 + 2 * 32) + 100)
    plan = Partial(channels=32).plan(FIGURE_1, small)
    assert not any(buffer.role == "scratch" for buffer in plan.buffers)
    assert cost(plan, FIGURE_1, small).arena_bytes <= small.sram_bytes
    as_c(tmp_path, FIGURE_1, plan, core())
    graph = entrance()
    peak = partial(8).proposed(view_of(graph))[0].peak
    assert passes(partial(8).plan(graph, core(sram_bytes=peak // 2 + 64))) == [12]


@pytest.mark.parametrize("strategy", [Ordinary(), Partial()])
def test_room_outside_of_the_chip(strategy: Strategy) -> None:
    """Scratch where the arena is: little SRAM does not matter."""
    outside = MemoryRegion("sdram", 0xC0000000, 1 << 20, external=True)
    board = replace(core(sram_bytes=4096), activations_in="sdram", regions=(outside,))
    assert any(buffer.role == "scratch" for buffer in strategy.plan(FIGURE_1, board).buffers)


ROUNDED = [(host(), 8, 16), (core(), 8, 12), (core(), 8, 1), (core(), 16, 36)]


@pytest.mark.parametrize(
    ("board", "bits", "channels"), quick(1, [*ROUNDED, (core(), 16, 1), (host(), 16, 16)], ci=3)
)
def test_rounded_sums(tmp_path: Path, board: object, bits: int, channels: int) -> None:
    plan = partial(bits, channels).plan(FIGURE_1, board)  # type: ignore[arg-type]
    plan = coarser(calibrated(plan, FIGURE_1, frames(FIGURE_1, 2, 1)), 5)
    native = as_c(tmp_path, FIGURE_1, plan, board)  # type: ignore[arg-type]
    in_registers = "a window in registers" in native.files["model.c"]
    assert in_registers == (channels == 1)


ENTRANCES = ((0, 1), (4, 3), *((seed, 1 + seed % 3) for seed in range(1, 60)))


@pytest.mark.parametrize(("seed", "channels"), quick(1, ENTRANCES, ci=1))
def test_few_channels_of_an_entrance(tmp_path: Path, seed: int, channels: int) -> None:
    """One, two or three at a time, where a word of four would hold others."""
    graph = nets.entrance(seed)
    plan = calibrated(partial(8, channels).plan(graph, core()), graph, frames(graph, 2, 1))
    verify(plan, graph)
    text = as_c(tmp_path, graph, plan, core()).files["model.c"]
    kinds = ("row by row of the kernel", "1 channel at a time, each with", "a window in registers")
    assert channels > 1 or all(kind in text for kind in kinds)


SUMS = ((8, 1, 0), (8, 3, 1), (16, 1, 2), *((8, 1, seed) for seed in range(3, 60)))


@pytest.mark.parametrize(("bits", "channels", "seed"), quick(1, SUMS, ci=2))
def test_sums_over_windows(tmp_path: Path, bits: int, channels: int, seed: int) -> None:
    """Beyond edges, of odd numbers of channels and of pixels: nothing is added twice."""
    graph = nets.residual(seed)
    plan = partial(bits, channels).plan(graph, core())
    assert dict(plan.notes)["accumulate_layers"] == 1  # with 16 bits it is the dense layer
    plan = calibrated(plan, graph, frames(graph, 2, 1))
    verify(plan, graph)
    native = as_c(tmp_path, graph, plan, core())
    kernels = [line for line in native.files["model.c"].splitlines() if line.startswith("/* ")]
    kind = "a window in registers" if channels == 1 else "pixels and 2 channels"
    assert sum("partial, " in line and kind in line for line in kernels) == (bits == 8)
    assert channels > 1 or sum("one channel at a time, its columns in" in line for line in kernels)


# --- what takes the place of what it is made of, so that fewer sums are rounded


def entrance(width: int = 8, bits: int = 8) -> Graph:
    """Build the beginning of MobileNetV2; the project layer's sums are added one channel at a time,
    or two where those of the depthwise layer lie over those of the first."""
    net = Net((18, 2 * width, 3))
    x = net.conv(net.depthwise(net.conv("input", 12, 3, 2)), 64 // bits)
    net.dense(net.average(x), 3)
    return net.graph()


def separables() -> Graph:
    """Two layers that are as wide, where any two of their tensors are too much; 35 pixels."""
    net = Net((7, 5, 20))
    x = "input"
    for channels in (24, 24, 20):
        x = net.depthwise(net.conv(x, channels))
    net.dense(net.average(x), 3)
    return net.graph()


def planned(graph: Graph, strategy: Partial, own_kernels: bool = True) -> Plan:
    """Verified, and no higher than the rules say."""
    board = core() if own_kernels else host()
    plan = calibrated(strategy.plan(graph, board), graph, frames(graph, 2, 1))
    peak = strategy.proposed(view_of(graph))[0].peak
    assert 2 * cost(plan, graph, board, verify(plan, graph)).pmu_bytes <= peak
    return plan


@pytest.mark.parametrize(("bits", "width"), quick(1, [(8, 8), (16, 7), (8, 9), (16, 8)], ci=2))
def test_two_channels_at_once(tmp_path: Path, bits: int, width: int) -> None:
    graph = entrance(width, bits)
    plan = planned(graph, partial(bits))
    assert passes(plan) == [6] and passes(planned(graph, partial(bits), False)) == [12]
    native = as_c(tmp_path, graph, coarser(plan, COARSE) if bits == 8 else plan, core())
    together = "2 input channels at a time, 4 output" in native.files["model.c"]
    assert together == (width % 4 == 0)


def test_loops_are_no_wider_than_kernels_take() -> None:
    moves = ByChannels(accumulator_bits=8)
    best, _ = moves.proposed(view_of(entrance()))
    for most in (1, 2):
        (loop,) = loops(moves.in_place(best, lambda op, n, most=most: 0 < n <= most))
        assert loop.at_once == most


@pytest.mark.ci
def test_nothing_is_rounded(tmp_path: Path) -> None:
    graph = separables()
    plans = [planned(graph, partial(8), own_kernels) for own_kernels in (False, True)]
    assert [dict(plan.notes)["accumulate_layers"] for plan in plans] == [1, 0]
    exact(plans[1], graph)
    as_c(tmp_path, graph, plans[1], core())


@pytest.mark.slow
def test_no_sum_of_a_keyword_network_is_rounded() -> None:
    """Whichever of the core's kernels is the fastest; two layers' are by the published rules."""
    graph = zoo.network("micronet_kws_l")
    plan = partial(8).plan(graph, core())
    assert dict(plan.notes)["accumulate_layers"] == 0
    assert cost(plan, graph, core()).pmu_bytes <= 65_750


@pytest.mark.parametrize("strategy", [Partial(search="pex", accumulator_bits=8), partial(8, 1)])
def test_the_published_rules_alone(strategy: Partial) -> None:
    """Ignore the board where they or the number of channels are asked for."""
    graph = entrance()
    assert passes(planned(graph, strategy)) == passes(planned(graph, strategy, False)) == [12]


def test_groups_of_channels_that_would_be_computed_twice() -> None:
    net = Net((6, 6, 14))
    net.depthwise("input")
    graph = net.graph()
    (op, *_) = graph.operators
    assert [n for n in range(1, 15) if able(graph, core(), op, n)] == [1, 2, 3]
    assert not able(graph, host(), op, 1)
