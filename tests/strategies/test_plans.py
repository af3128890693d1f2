"""What strategies for chains owe one another, and what they refuse. That plans are proved and
compute the reference is in tests/contracts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.strategies.base import LAYOUTS
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.replace import Replace
from tests.comparing import equal
from tests.contracts.networks import chains
from tests.graphs import Net
from tests.strategies.chains import IN_PLACE, STRATEGIES, Chain, board, mnist
from tests.strategies.peaks import arena_nibbles, orders_of, pmu_nibbles
from tests.tiers import quick

CONF = Path(__file__).parents[2] / "conf" / "strategy"


@pytest.mark.parametrize("examples", quick(1, [25, 75]))
def test_better_strategies_never_need_more(examples: int) -> None:
    settings(max_examples=examples, deadline=None, derandomize=True, database=None)(
        given(chains())(never_need_more)
    )()


def never_need_more(chain: Chain) -> None:
    graph = chain.graph()
    for layout in LAYOUTS:
        plans = [strategy(layout).plan(graph, board(streams=False)) for strategy in STRATEGIES]
        assert all(verify(plan, graph).recomputed == {} for plan in plans)
        ordinary, by_rows, transposed, greedy = map(pmu_nibbles, plans)
        assert by_rows <= ordinary
        assert greedy <= transposed or any(t.dtype.bits > 4 for t in chain.tensors.values())


def test_average_pooling_streams_with_channels() -> None:
    chain = Chain((6, 4, 3), "uint8").average("pooled", 6, kernel=(3, 2), stride=(3, 2))
    graph, frame = chain.graph(), chain.frame()
    for layout in LAYOUTS:
        plan = Herringbone(layout).plan(graph, board())
        assert plan.buffer["pooled.sums"].bits == 16
        verify(plan, graph)
        equal(interpret(plan, graph, frame).output, graph.outputs(frame[None])[0])
        assert plan.output == "pooled"
        assert arena_nibbles(plan) <= 2 * 2 * 3 + 8 + 2 * 3 * 4


@pytest.mark.parametrize(
    ("dtype", "kernel", "bits"),
    [("uint4", 2, 8), ("uint4", 3, 16), ("uint8", 2, 16), ("uint8", 12, 32), ("int8", 1, 16)],
)
def test_sums_are_wide_enough_for_the_brightest_image(dtype: str, kernel: int, bits: int) -> None:
    size = (kernel, kernel)
    chain = Chain((2 * kernel, kernel, 1), dtype).average("y", 0, "int32", kernel=size, stride=size)
    graph, kind = chain.graph(), chain.tensors["image"].dtype
    plan = Herringbone().plan(graph, board())
    assert plan.buffer["y.sums"].bits == bits
    for level in (kind.minimum, kind.maximum):
        frame = np.full((2 * kernel, kernel, 1), level)
        assert (interpret(plan, graph, frame).output == level * kernel**2).all()


def test_maximum_pooling_streams() -> None:
    chain = Chain((4, 6, 2), "uint8").maximum("y")
    graph = chain.graph()
    plan = Replace().plan(graph, board())
    verify(plan, graph)
    for frame in (chain.frame(), np.full((4, 6, 2), 255)):
        expected = graph.outputs(frame[None])[0]
        equal(interpret(plan, graph, frame).output, expected)


def test_windows_with_gaps_do_not_stream() -> None:
    """A stream is read without gaps: the image is moved to SRAM, and counted, instead."""
    chain = Chain((5, 4, 1), "uint8").average("pooled", 6)
    graph, frame = chain.graph(), chain.frame()
    plan = Herringbone().plan(graph, board())
    assert plan.buffer["image"].memory == "sram"
    verify(plan, graph)
    equal(interpret(plan, graph, frame).output, graph.outputs(frame[None])[0])


def test_image_in_memory_counts() -> None:
    graph = Chain((4, 4, 2)).conv("y", 2).graph()
    held, streamed = (Ordinary().plan(graph, board(streams)) for streams in (False, True))
    assert "image" in held.resident and "stream" not in held.memory
    assert streamed.buffer["image.stream"].memory == "stream"
    assert pmu_nibbles(held) == pmu_nibbles(streamed) == 32 + 8


def test_a_plan_too_large_is_still_a_plan() -> None:
    plan = Ordinary().plan(mnist().graph(), board(sram_bytes=64))
    assert arena_nibbles(plan) / 2 == 760 > plan.memory["sram"].bytes


def replaced(graph: Graph, *operators: Operator, output: str | None = None) -> Graph:
    return replace(graph, operators=operators, output=output or operators[-1].output)


def residual() -> Graph:
    net = Net((5, 5, 4))
    net.plus(net.image, net.conv(4))
    return net.graph()


def test_one_piece_is_for_chains() -> None:
    for strategy in IN_PLACE:
        with pytest.raises(ThimbleError, match=r"\(Add\) with strategy.layout=cont") as error:
            strategy("contiguous").plan(residual(), board())
        assert "\n" not in str(error.value)


def test_nothing_to_compute_is_refused() -> None:
    graph = Chain((5, 5, 2)).conv("a", 2).graph()
    with pytest.raises(ThimbleError, match="nothing to compute"):
        Herringbone().plan(replaced(graph, *graph.operators, output="image"), board())


def test_what_nothing_needs_is_not_run() -> None:
    graph = Chain((5, 5, 2)).conv("a", 2).conv("b", 2).graph()
    plan = Herringbone().plan(replaced(graph, *graph.operators, output="a"), board())
    assert plan.output == "a" and orders_of(plan, "b") == []


def test_who_goes_by_no_pixels_lies_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Chain((5, 5, 2)).conv("a", 2).dense("b", 2).graph()
    monkeypatch.setattr(Conv2d, "slides", False)
    plan = Herringbone().plan(graph, board(streams=False))
    assert pmu_nibbles(plan) == 50 + 18
    verify(plan, graph)


def test_every_strategy_has_a_config() -> None:
    names = {path.stem for path in CONF.glob("*.yaml")}
    assert {strategy.name for strategy in STRATEGIES} | {"naive"} <= names
