"""Times of operators by themselves, weights in a window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import cycles_by_operator
from pipeline.kernels.alone import alone_us
from pipeline.plan.rates import KERNELS_US, Rates, note_us, noted_us
from pipeline.plan.vocabulary import PlanError
from pipeline.search.swap.layers import layers, timed
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from pipeline.verdict import check
from tests.strategies.swap.nets import Chain, board
from tests.targets.cortex_m import board_named


def network() -> Graph:
    chain = Chain("net", (16, 16, 8))
    chain.conv(16, 3, 1, 1)
    chain.conv(16, 3, 1, 1, depthwise=True)
    chain.maximum(2, 2)
    chain.dense(10)
    return chain.graph(np.random.default_rng(7))


def roomy(**values: object) -> Hardware:
    return replace(board_named("stm32f746g_sd"), **values)  # type: ignore[arg-type]


def test_every_operator_takes_the_cycles_of_the_kernel_that_plans_name() -> None:
    """Cut into rows and tiles they take a little more, which the plan notes."""
    graph, hardware = network(), roomy()
    plan = Swap().plan(graph, hardware)
    found = alone_us(graph, hardware)
    assert set(found) == {op.name for op in graph.operators}
    for name, cycles in cycles_by_operator(plan, graph, hardware).items():
        assert found[name] * hardware.clock_hz / 1e6 == pytest.approx(cycles, rel=0.1), name
        noted = noted_us(plan, graph)[name] * hardware.clock_hz / 1e6
        assert noted == pytest.approx(max(cycles, found[name] * hardware.clock_hz / 1e6), rel=1e-4)
    said, least_us = check(plan, graph, hardware), sum(found.values())
    assert 0 <= said["bound_overhead_pct"] <= said["overhead_pct"]
    assert said["overhead_pct"] == pytest.approx(
        100 * (said["makespan_us"] / least_us - 1), abs=1e-3
    )


def test_a_depthwise_product_takes_longer_than_one_of_a_convolution() -> None:
    graph = network()
    found, tensors = alone_us(graph, roomy()), graph.tensors
    dense, own = (found[op.name] / op.macs(tensors) for op in graph.operators[:2])
    assert own > 3 * dense


@pytest.mark.parametrize("why", ["paper", "portable", "another core"])
def test_otherwise_a_product_takes_what_the_board_says(why: str) -> None:
    hardware = roomy()
    changed = {
        "paper": replace(hardware, card=replace(hardware.card, timing="paper")),
        "portable": replace(hardware, kernels="portable"),
        "another core": board(1 << 16),
    }
    assert alone_us(network(), changed[why]) == {}


def test_plans_and_their_times_have_the_same_work() -> None:
    graph, hardware = network(), roomy()
    plan, us = Swap().plan(graph, hardware), alone_us(graph, hardware)
    rates = Rates.of(hardware)
    planned = timed(layers(graph), us, rates)
    assert rates.compute_us(sum(layer.work for layer in planned)) == pytest.approx(sum(us.values()))
    found = summarized(simulate(plan, graph, hardware), graph, hardware)
    assert found["compute_us"] == pytest.approx(sum(noted_us(plan, graph).values()))
    assert found["makespan_us"] >= float(dict(plan.notes)["bound_us"])
    flat = summarized(simulate(replace(plan, notes=()), graph, hardware), graph, hardware)
    assert flat["compute_us"] == pytest.approx(
        rates.compute_us(sum(layer.work for layer in layers(graph)))
    )


def test_a_plan_keeps_the_times_that_it_was_made_for() -> None:
    """In the setting of the paper it has none."""
    graph, hardware = network(), roomy()
    plan = Swap().plan(graph, hardware)
    assert set(noted_us(plan, graph)) == set(alone_us(graph, hardware))
    paper = replace(hardware, card=replace(hardware.card, timing="paper"))
    assert KERNELS_US not in dict(Swap().plan(graph, paper).notes)
    assert KERNELS_US in dict(
        Swap(scheduler="swapnn", buffer_bytes=8192).plan(graph, hardware).notes
    )
    assert note_us({}, graph) == ()
    some = replace(plan, notes=note_us({graph.operators[1].name: 5.0}, graph))
    assert noted_us(some, graph) == {graph.operators[1].name: 5.0}


@pytest.mark.parametrize(
    "text", ["1.0", "1 2 3 x", "1 2 3 nan", "1 2 3 -4", "1 2 3 inf", "1 2 3 4 5"]
)
def test_times_that_are_none_are_damage(text: str) -> None:
    graph = network()
    plan = replace(Swap().plan(graph, roomy()), notes=((KERNELS_US, text),))
    with pytest.raises(PlanError, match="kernels_us is damaged: a time for each operator"):
        simulate(plan, graph, roomy())
