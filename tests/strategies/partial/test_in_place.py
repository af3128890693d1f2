"""What takes the place of what it is made of, so that fewer sums are rounded: outputs byte for byte
those of the interpreter, by the portable twin of a core's kernels, and no peak above the published
rules'."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.calibrate import calibrated
from pipeline.plan.cost import cost
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Loop, Plan
from pipeline.schedules.lower import needed
from pipeline.search.channels.in_place import Places
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.support import coarser, core, twin
from tests.codegen.int8.support import frames, host
from tests.comparing import equal
from tests.strategies.nets import Net
from tests.strategies.partial import bench
from tests.tiers import quick

COARSE = 1100
"""Steps with which the sum of any two products fits 8 bits."""

STRATEGIES = Partial(search="pex", accumulator_bits=8), Partial(accumulator_bits=8, channels=1)


def entrance(width: int = 8, bits: int = 8) -> Graph:
    """How MobileNetV2 begins; the project layer's sums are added one channel at a time, or two
    where those of the depthwise layer lie over those of the first."""
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


def planned(graph: Graph, strategy: Partial, board: str = "cortex-m4") -> Plan:
    """Verified, and no higher than the rules say."""
    hardware = core(board) if board else host(1 << 24)
    plan = calibrated(strategy.plan(graph, hardware), graph, frames(graph, 2, 1))
    peak = strategy.scheduled(graph, graph.input, needed(graph))[0].peak
    assert 2 * cost(plan, graph, hardware, verify(plan, graph)).pmu_bytes <= peak
    return plan


def passes(plan: Plan) -> list[int]:
    return [step.count for step in plan.tracks[0].steps if isinstance(step, Loop)]


def check(folder: Path, graph: Graph, plan: Plan) -> str:
    given = frames(graph, 3)
    native = twin(folder, graph, plan)
    equal(native(given), [interpret(plan, graph, f).output for f in given])
    return native.files["model.c"]


@pytest.mark.parametrize(("bits", "width"), quick(1, [(8, 8), (16, 7), (8, 9), (16, 8)], ci=2))
def test_two_channels_at_once(tmp_path: Path, bits: int, width: int) -> None:
    graph = entrance(width, bits)
    plan = planned(graph, Partial(accumulator_bits=bits))  # type: ignore[arg-type]
    assert passes(plan) == [6]
    assert passes(planned(graph, Partial(accumulator_bits=bits), "")) == [12]  # type: ignore[arg-type]
    code = check(tmp_path, graph, coarser(plan, COARSE) if bits == 8 else plan)
    assert ("2 input channels at a time, 4 output" in code) == (width % 4 == 0)


@pytest.mark.ci
def test_nothing_is_rounded(tmp_path: Path) -> None:
    graph = separables()
    assert dict(planned(graph, Partial(accumulator_bits=8), "").notes)["accumulate_layers"] == 1
    plan = planned(graph, Partial(accumulator_bits=8))
    assert dict(plan.notes)["accumulate_layers"] == 0
    check(tmp_path, graph, plan)
    equal(interpret(plan, graph, frame := frames(graph, 2)[0]).output,
                          graph.outputs(frame[None])[0])  # fmt: skip


@pytest.mark.slow
def test_no_sum_of_a_keyword_network_is_rounded() -> None:
    """Whichever of the core's kernels is the fastest; two layers' are by the published rules."""
    graph, hardware = bench.network("micronet_kws_l"), core("cortex-m4")
    plan = Partial(accumulator_bits=8).plan(graph, hardware)
    assert dict(plan.notes)["accumulate_layers"] == 0
    assert cost(plan, graph, hardware).pmu_bytes <= bench.PEAKS["micronet_kws_l"][8]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_published_rules_alone(strategy: Partial) -> None:
    """Where they or the number of channels are asked for, the board changes nothing."""
    graph = entrance()
    assert passes(planned(graph, strategy)) == passes(planned(graph, strategy, "")) == [12]


def test_without_room_for_scratch() -> None:
    """Rows that are overwritten are kept there."""
    graph = entrance()
    peak = Partial(accumulator_bits=8).scheduled(graph, graph.input, needed(graph))[0].peak
    board = core(sram_bytes=peak // 2 + 64)
    assert passes(Partial(accumulator_bits=8).plan(graph, board)) == [12]


def test_groups_of_channels_that_would_be_computed_twice() -> None:
    net = Net((6, 6, 14))
    net.depthwise("input")
    graph = net.graph()
    places, op = Places(graph, core()), graph.operators[0]
    assert [n for n in range(1, 15) if places.able(op, n)] == [1, 2, 3]
    assert not Places(graph, host(1 << 20)).able(op, 1)
