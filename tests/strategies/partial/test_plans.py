"""Plans of partial execution: proved, run on frames, and no larger than was searched for."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import BoxValues
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.plan.calibrate import calibrated, needs_calibration, rounds
from pipeline.plan.cost import cost
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Clear, Compute, Loop, Plan
from pipeline.schedules.lower import needed
from pipeline.search.channels.network import Network, kind
from pipeline.search.channels.replay import replay
from pipeline.search.channels.rules import Rules
from pipeline.search.channels.schedule import Loop as Channels
from pipeline.search.channels.schedule import Step, loops
from pipeline.search.channels.search import search
from pipeline.strategies.partial import Partial
from tests.comparing import equal
from tests.strategies import nets
from tests.strategies.chains import board, mnist
from tests.strategies.nets import Net
from tests.strategies.partial.networks import random_network
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick


def run(plan: Plan, graph: Graph, seed: int = 0) -> bool:
    """Whether the plan gives the graph's output on a random frame."""
    frame = np.random.default_rng(seed).integers(-128, 128, graph.tensors[graph.input].shape)
    output = interpret(plan, graph, frame).output
    equal(output, graph.outputs(frame[None])[0], strategy=plan.strategy)
    return True


def proved(graph: Graph, strategy: Partial) -> tuple[float, int]:
    """Peak and arena of the plan, which is verified and gives exactly the graph's output."""
    plan = strategy.plan(graph, BOARD)
    assert not verify(plan, graph).recomputed
    assert run(plan, graph)
    found = cost(plan, graph, BOARD)
    return found.pmu_bytes, found.arena_bytes


@pytest.mark.parametrize("seed", quick(9, range(120), ci=21))
def test_random_networks_are_exact(seed: int) -> None:
    """32 bits are ordinary execution byte for byte; the arena is the peak that was searched for,
    and what alignment costs."""
    graph, channels = random_network(seed, 8), (0, 1, 3)[seed % 3]
    network = Network.of(graph, graph.input, needed(graph), 32)
    best = search(Rules(network, channels or 1), "exact", 10**6)
    peak, arena = proved(graph, Partial(channels=channels))
    aligned = 3 * best.accumulated  # what addresses of 32-bit accumulators may cost
    assert peak <= best.peak / 2 <= arena <= best.peak / 2 + aligned


def test_loops_are_as_wide_as_the_peak_allows() -> None:
    graph = nets.ds_cnn((64,) * 5)
    operators, start = needed(graph), graph.input
    best, found = Partial().scheduled(graph, start, operators)
    loads = replay(found, graph, start, operators, 32)
    for place, part in enumerate(found):
        if isinstance(part, Channels) and part.at_once < part.channels:
            held = max(x.fixed + (part.at_once + 1) * x.channel for x in loads if x.loop == place)
            assert held > best.peak
    assert any(part.at_once > 1 for part in loops(found))


@pytest.mark.parametrize("name", ["figure 1", "MicroNets"])
def test_published_networks_are_exact(name: str) -> None:
    graph = nets.fig1_block() if name == "figure 1" else nets.micronet_kws_l()
    assert proved(graph, Partial()) == (
        (20_618, 20_618) if name == "figure 1" else (69_000, 69_000)
    )


@pytest.mark.slow
def test_mobilenet_is_exact() -> None:
    assert proved(nets.mobilenet_v2(160), Partial()) == (307_200, 307_200)


def test_set_channels_count() -> None:
    """Figure 1's block with 12 channels at once: 12 times two rings."""
    graph = nets.fig1_block()
    peak, _ = proved(graph, Partial(channels=12))
    assert peak == 13 * 13 * (24 + 4 * 24 + 2 * 12)


def test_last_pass_may_be_smaller() -> None:
    graph = nets.fig1_block()  # 144 channels
    plan = Partial(channels=50).plan(graph, BOARD)
    (loop,) = (step for step in plan.tracks[0].steps if isinstance(step, Loop))
    assert loop.count == 3 and run(plan, graph)


@pytest.mark.ci
def test_alignment() -> None:
    graph = nets.fig1_block()
    aligned = replace(BOARD, alignment_bytes=8)
    plan = Partial().plan(graph, aligned)
    assert all(b.extent[0] % 16 == 0 for b in plan.buffers if b.memory == "sram")
    assert 20_618 <= cost(plan, graph, aligned).arena_bytes <= 20_618 + 8 * 5
    assert run(plan, graph)


def narrow(graph: Graph, bits: int, channels: int = 0) -> tuple[Plan, Plan]:
    """The plan before and after its accumulators are calibrated on three frames."""
    plan = Partial(accumulator_bits=bits, channels=channels).plan(graph, BOARD)
    rng = np.random.default_rng(3)
    frames = rng.integers(-128, 128, (3, *graph.tensors[graph.input].shape))
    return plan, calibrated(plan, graph, frames)


@pytest.mark.parametrize("bits", quick(0, [8, 16], ci=1))
def test_narrow_accumulators_round(bits: int) -> None:
    graph = nets.fig1_block()
    before, after = narrow(graph, bits)
    assert needs_calibration(before) and rounds(after) and not needs_calibration(after)
    with pytest.raises(ThimbleError, match="calibrate the plan"):
        verify(before, graph)
    assert not verify(after, graph).recomputed
    frame = np.random.default_rng(9).integers(-128, 128, (13, 13, 24))
    difference = interpret(after, graph, frame).output - graph.outputs(frame[None])[0]
    assert np.abs(difference).max() <= 10
    assert cost(after, graph, BOARD).pmu_bytes == 13 * 13 * (24 + 24 * bits // 8 + 2)


def test_sixteen_bits_that_hold_every_sum_are_exact() -> None:
    """Weights of 1 and 0 over 8 channels: no sum is beyond 8 * 128."""
    net = Net((5, 5, 2))
    net.conv(net.depthwise(net.conv("input", 8)), 2)
    for name, values in net.constants.items():
        net.constants[name] = values & 1
    graph = net.graph()
    plan = Partial(accumulator_bits=16).plan(graph, BOARD)
    assert any(isinstance(step, Clear) for step in plan.tracks[0].steps)
    assert not needs_calibration(plan) and verify(plan, graph) and run(plan, graph)


def test_rounding_is_once_a_pass_and_saturates() -> None:
    """The interpreter against the decision's own words, element by element."""
    graph = nets.fig1_block()
    _, plan = narrow(graph, 8, channels=16)
    plan = replace(plan, buffers=tuple(
        replace(b, step=b.step // 3) if b.step > 1 else b for b in plan.buffers))  # fmt: skip
    frame = np.random.default_rng(5).integers(-128, 128, (13, 13, 24))
    values = {name: each[0] for name, each in graph.run(frame[None]).items()}
    conv = next(op for op in graph.operators if isinstance(op, Conv2d) and op.output == "conv2d2")
    (step,) = (b.step for b in plan.buffers if b.role == "accumulator")
    x = values[conv.inputs[0]] - graph.tensors[conv.inputs[0]].zero_point
    weights = graph.constants[conv.parameters[0]][:, 0, 0]
    held, saturated = np.zeros((13, 13, 24), np.int64), 0
    for first in range(0, 144, 16):
        part = slice(first, first + 16)
        total = x[..., part] @ weights[:, part].T
        held = held + np.sign(total) * ((2 * np.abs(total) + step) // (2 * step))
        saturated += int((np.abs(held) > 128).sum())
        held = np.clip(held, -128, 127)
    assert saturated
    box = graph.tensors[conv.output].box
    regions = {conv.parameters[1]: graph.constant(conv.parameters[1])}
    ours = conv.finish(graph.tensors, box, held[None] * step, regions)
    add = graph.operators[-1]
    assert add.output == graph.output
    operands = {conv.output: BoxValues(box, ours), "input": BoxValues(box, frame[None])}
    acc = add.accumulate(graph.tensors, box, operands)
    expected = add.finish(graph.tensors, box, acc, {})[0]
    equal(interpret(plan, graph, frame).output, expected)


def test_streamed_image_is_pooled_on_its_way() -> None:
    """4-bit tensors and an input that never exists whole."""
    graph = mnist().graph()
    uno = board(sram_bytes=1 << 12)
    plan = Partial().plan(graph, uno)
    assert not verify(plan, graph).recomputed
    frame = np.random.default_rng(0).integers(0, 256, (28, 28, 1))
    equal(interpret(plan, graph, frame).output, graph.outputs(frame[None])[0])


def test_kinds_of_operators() -> None:
    net = Net((4, 4, 6))
    conv, depthwise = net.conv("input", 12), net.depthwise("input")
    gate = net.multiply(depthwise, net.average(depthwise))
    one = net.multiply("input", net.conv("input", 1))
    joined, flat = net.concat(conv, gate), net.reshape(gate, 96)
    kinds = {op.output: kind(op, net.tensors) for op in net.operators}
    assert kinds[conv] == "aggregating"
    assert kinds[depthwise] == kinds[gate] == "channelwise"
    assert kinds[one] == kinds[joined] == kinds[flat] == "other"
    assert kinds[net.operators[2].output] == "channelwise"  # global pooling


def test_replay_refuses_wrong_schedules() -> None:
    graph = nets.fig1_block()
    operators = needed(graph)
    _, right = Partial(accumulator_bits=8).scheduled(graph, graph.input, operators)
    (number, loop) = next((n, p) for n, p in zip(count(), right) if isinstance(p, Channels))
    broken = (
        (replace(loop, steps=loop.steps[:-1]),),  # nothing uses what it makes
        (replace(loop, steps=loop.steps[::-1]),),
        (loop, loop),
        (replace(loop, channels=143),),
        (Step("full", loop.steps[0].tensor), loop),
    )
    for part in broken:
        wrong = (*right[:number], *part, *right[number + 1 :])
        with pytest.raises(ThimbleError):
            replay(wrong, graph, graph.input, operators, 8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search": "best"}, "pex or exact"),
        ({"accumulator_bits": 12}, "8, 16 or 32"),
        ({"channels": -1}, "strategy.channels=-1"),
    ],
)
def test_mistaken_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(ThimbleError, match=words):
        Partial(**options)  # type: ignore[arg-type]


def test_accumulating_computes_are_partial() -> None:
    plan = Partial(accumulator_bits=8).plan(nets.fig1_block(), BOARD)
    (loop,) = (step for step in plan.tracks[0].steps if isinstance(step, Loop))
    assert [s.partial for s in loop.body if isinstance(s, Compute)] == [False, False, True]
