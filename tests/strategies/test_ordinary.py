"""Ordinary execution of any graph: against brute force, and against published peaks to the byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.reshape import Reshape
from pipeline.hardware import Hardware
from pipeline.plan.cost import Cost, cost
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.strategies.ordinary import Ordinary
from tests.comparing import equal
from tests.strategies import nets
from tests.strategies.brute import optimum
from tests.strategies.chains import board
from tests.strategies.nets import Net
from tests.tiers import quick

ORDINARY = Ordinary()
BOARD = replace(board(streams=False, weights_in="flash", sram_bytes=1 << 24), flash_bytes=1 << 28)


def proved(
    graph: Graph, hardware: Hardware = BOARD, seed: int = 0, strategy: Ordinary = ORDINARY
) -> tuple[Plan, Cost]:
    """The plan and its cost, after it has been verified and run on a random frame."""
    plan = strategy.plan(graph, hardware)
    found = cost(plan, graph, hardware)
    frame = np.random.default_rng(seed).integers(-128, 128, graph.tensors[graph.input].shape)
    equal(interpret(plan, graph, frame).output, graph.outputs(frame[None])[0])
    kept = {"input_kept": True} if strategy.preserve_input else {}
    assert dict(plan.notes) == {"order_proved": True, "arena_proved": True, **kept}
    return plan, found


def random_graph(seed: int) -> Graph:
    """Two to ten operators of any kind over tensors of one to six bytes; all loose ends are joined,
    or, sometimes, left loose."""
    rng = np.random.default_rng(seed)
    net = Net((1, 1, int(rng.integers(1, 7))), seed)
    names = ["input"]

    def some(like: str | None = None) -> str:
        fitting = [
            n for n in names if like is None or net.tensors[n].shape == net.tensors[like].shape
        ]
        return fitting[int(rng.integers(max(0, len(fitting) - 4), len(fitting)))]

    wanted = int(rng.integers(2, 8))
    while len(net.operators) < wanted:
        a = some()
        kind = rng.choice(["conv", "conv", "depthwise", "add", "multiply", "lookup", "gate", "cat",
                           "reshape"])  # fmt: skip
        match kind:
            case "conv":
                made = net.conv(a, int(rng.integers(1, 7)))
            case "depthwise":
                made = net.depthwise(a)
            case "add":
                made = net.add(a, some(like=a))
            case "multiply":
                made = net.multiply(a, some(like=a))
            case "gate":
                made = net.multiply(a, net.conv(some(), 1))
            case "cat" if some() != a:
                made = net.concat(a, next(n for n in names if n != a))
            case "reshape":
                flat = net.reshape(a, net.tensors[a].size)
                made = net.reshape(net.lookup(flat), *net.tensors[a].shape)
            case _:
                made = net.lookup(a)
        names.append(made)
    if rng.random() < 0.2:
        return net.graph()
    read = {name for op in net.operators for name in op.inputs}
    ends = [op.output for op in net.operators if op.output not in read]
    return net.graph(net.concat(*ends) if len(ends) > 1 else ends[0])


def equals_brute_force(seed: int) -> None:
    graph = random_graph(seed)
    _, found = proved(graph, seed=seed)
    least, arena = optimum(graph)
    assert (found.pmu_bytes, found.arena_bytes) == (least, arena), seed
    assert found.over_bound_bytes == arena - least
    streamed = Ordinary().plan(graph, replace(BOARD, streams_input=True))
    verify(streamed, graph)
    assert cost(streamed, graph, BOARD).arena_bytes == arena


@pytest.mark.parametrize("first", quick(1, range(0, 1200, 30), ci=2))
def test_equals_brute_force(first: int) -> None:
    for seed in range(first, first + 30):
        equals_brute_force(seed)


@pytest.mark.ci
def test_an_input_that_is_kept_costs_no_more_than_it_must() -> None:
    more = 0
    for seed in range(15):
        graph = random_graph(seed)
        plan, found = proved(graph, seed=seed, strategy=Ordinary(preserve_input=True))
        least, arena = optimum(graph, keep_input=True)
        assert (found.pmu_bytes, found.arena_bytes) == (least, arena), seed
        assert found.over_bound_bytes == arena - least
        low, high = plan.buffer[graph.input].extent
        written = [plan.buffer[step.out.buffer].extent for step in plan.tracks[0].steps]
        assert all(stop <= low or high <= start for start, stop in written), seed
        more += least > optimum(graph)[0]
    assert more, "it never mattered"


def test_an_input_that_streams_in_cannot_be_kept() -> None:
    with pytest.raises(ThimbleError, match=r"preserve_input.*hardware\.streams_input=false"):
        Ordinary(preserve_input=True).plan(random_graph(0), replace(BOARD, streams_input=True))


PUBLISHED: dict[str, tuple[Callable[[], Graph], int]] = {
    "pex figure 1": (nets.fig1_block, 52_728),
    "mobilenet_v2 224": (lambda: nets.mobilenet_v2(224), 1_505_280),
    "mobilenet_v2 172": (lambda: nets.mobilenet_v2(172), 887_520),
    "mobilenet_v2 160": (lambda: nets.mobilenet_v2(160), 768_000),
    **{
        f"mobilenet_v2 vww {size}": (lambda size=size: nets.mobilenet_v2(size, 2), peak)
        for size, peak in (
            *((80, 192_000), (96, 276_480), (112, 376_320), (128, 491_520)),
            *((144, 622_080), (176, 929_280)),
        )
    },
    "res15": (nets.res15, 66_150),
    "micronet_kws_l": (nets.micronet_kws_l, 169_740),
    "ds_cnn_s": (lambda: nets.ds_cnn((64,) * 5), 16_000),
    "efficientnet_b0 160": (nets.efficientnet_b0, 768_000),
    "resnet8": (nets.resnet8, 49_152),
    "mobilenet_v1 vww": (nets.mobilenet_v1_vww, 55_296),
    "autoencoder": (nets.autoencoder, 768),
    "squeezenet": (nets.squeezenet, 16 * 16 * (48 + 48 + 96)),
}
"""int8 bytes: Pex's tables, MLPerf Tiny. SqueezeNet's by hand: its last join."""
FEW = ("pex figure 1", "res15", "ds_cnn_s", "resnet8", "autoencoder", "squeezenet")


@pytest.mark.parametrize("name", quick(FEW, PUBLISHED))
def test_published_peaks(name: str) -> None:
    make, peak = PUBLISHED[name]
    graph = make()
    plan = Ordinary().plan(graph, BOARD)
    found = cost(plan, graph, BOARD)
    assert dict(plan.notes) == {"order_proved": True, "arena_proved": True}
    assert (found.pmu_bytes, found.arena_bytes, found.over_bound_bytes) == (peak, peak, 0)
    assert found.macs_executed == graph.macs


@pytest.mark.parametrize("name", quick(2, ["autoencoder", "squeezenet", "resnet8"]))
def test_published_networks_compute_the_reference(name: str) -> None:
    proved(PUBLISHED[name][0]())


def test_a_better_order_than_the_given_one() -> None:
    """Two branches of 100 bytes that shrink to 1 each: one has to be finished first."""
    net = Net((1, 1, 10))
    wide = [net.conv("input", 100) for _ in range(2)]
    graph = net.graph(net.add(*(net.conv(name, 1) for name in wide)))
    _, found = proved(graph)
    assert found.pmu_bytes == 10 + 100 + 1


def test_squeeze_excitation_is_scaled_in_place() -> None:
    net = Net((4, 4, 8))
    wide = net.conv("input", 8)
    gate = net.lookup(net.conv(net.average(wide), 8))
    graph = net.graph(net.multiply(wide, gate))
    plan, found = proved(graph)
    assert found.pmu_bytes == 2 * 128
    assert plan.buffer[graph.output].map == plan.buffer[wide].map
    assert plan.buffer[gate].map == plan.buffer[graph.operators[2].output].map


def test_an_operand_that_lives_on_is_not_overwritten() -> None:
    net = Net((2, 2, 4))
    total = net.add("input", net.conv("input", 4))
    graph = net.graph(net.concat(total, "input"))
    plan, found = proved(graph)
    assert plan.buffer[total].map != plan.buffer["input"].map
    assert found.pmu_bytes == 16 + 16 + 32


def test_a_tensor_added_to_itself() -> None:
    net = Net((2, 2, 4))
    graph = net.graph(net.add("input", "input"))
    plan, found = proved(graph)
    assert found.pmu_bytes == 16
    (step,) = plan.tracks[0].steps
    assert isinstance(step, Compute) and len(step.ins) == 1


def test_a_broadcast_operand_is_not_overwritten() -> None:
    """(1, 1, c) times (h, w, c) has the shape of the second; only that one may be replaced."""
    net = Net((1, 1, 6))
    image = net.reshape(net.dense("input", 24), 2, 2, 6)
    graph = net.graph(net.multiply("input", image))
    plan, found = proved(graph)
    assert plan.buffer[graph.output].map.base == plan.buffer[image].map.base
    assert found.pmu_bytes == 6 + 24


def test_a_reshape_costs_nothing_where_its_input_dies() -> None:
    net = Net((2, 3, 4))
    flat = net.reshape("input", 24)
    graph = net.graph(net.dense(flat, 5))
    plan, found = proved(graph)
    assert found.pmu_bytes == 24 + 5
    assert plan.buffer[flat].map.base == plan.buffer["input"].map.base
    step = plan.tracks[0].steps[0]
    assert isinstance(step, Compute) and step.unit == (24,)
    assert isinstance(graph.operators[0], Reshape)


def test_operators_that_nothing_needs_are_left_out() -> None:
    net = Net((2, 2, 4))
    result = net.conv("input", 4)
    net.conv("input", 50)
    plan, found = proved(net.graph(result))
    assert found.pmu_bytes == 32
    assert len(plan.tracks[0].steps) == 1


def test_alignment_moves_addresses_not_the_peak() -> None:
    net = Net((1, 1, 5))
    x = net.conv("input", 7)
    graph = net.graph(net.add(net.conv(x, 7), x))
    plan, found = proved(graph, replace(BOARD, alignment_bytes=4))
    assert all(b.map.base % 8 == 0 for b in plan.buffers if b.role == "activation")  # type: ignore[union-attr]
    assert (found.pmu_bytes, found.arena_bytes) == (14, 15)


def test_weights_in_sram_lie_above_the_arena() -> None:
    graph = nets.fig1_block()
    plan, found = proved(graph, replace(BOARD, weights_in="sram"))
    lowest = min(b.extent[0] for b in plan.buffers if b.role == "constant")
    assert lowest == 2 * found.arena_bytes and {b.memory for b in plan.buffers} == {"sram"}


def test_nothing_to_compute_is_refused() -> None:
    net = Net((1, 1, 5))
    net.conv("input", 7)
    with pytest.raises(ThimbleError, match="nothing to compute: its output input is its input"):
        Ordinary().plan(net.graph("input"), BOARD)
