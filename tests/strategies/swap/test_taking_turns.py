"""Plans for a core that makes a card's transfers itself: nothing goes on beside anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.plan.fit import roomy
from pipeline.plan.rates import Rates, Transfers
from pipeline.search.swap import best
from pipeline.search.swap.layers import layers
from pipeline.search.swap.lower_bounds import lower_bound
from pipeline.search.swap.queues import QUEUES
from pipeline.search.swap.search import least_bytes
from tests.strategies.swap.nets import Chain, best_plan, checked, random_chain
from tests.tiers import quick

SIDE_BY_SIDE = Rates(0.1, Transfers(0.2, 3.0), Transfers(0.3, 5.0))
IN_TURNS = replace(SIDE_BY_SIDE, dma=False)


@pytest.mark.parametrize("seed", quick(range(3), range(20), ci=8))
def test_a_plan_takes_the_time_of_all_its_steps(seed: int) -> None:
    graph = random_chain(seed)
    parts = layers(graph)
    (found, *others) = best.Tries(graph, parts, 3000 // 16 * 16, 1, IN_TURNS).found()
    for each in (found, *others):
        tasks = each.builder.queues.tasks
        every = sum(task.us for name in QUEUES for task in tasks[name])
        assert each.scheduled.makespan_us == pytest.approx(every)
    plan = best_plan(graph, 3000, 1, IN_TURNS)
    notes = dict(plan.notes)
    assert notes["bound_by"] == "cpu and io"
    assert float(notes["makespan_us"]) >= float(notes["bound_us"])
    checked(roomy(plan), graph, seed)


def test_needs_no_second_place_for_weights() -> None:
    """Of a dense layer: the input, a row of weights and the output, where with DMA the next row
    arrives meanwhile."""
    chain = Chain("net", (8, 8, 4))
    chain.dense(5)
    graph = chain.graph()
    parts = layers(graph)
    assert least_bytes(parts) == 256 + 2 * 256 + 16
    assert least_bytes(parts, copies=1) == 256 + 256 + 16
    assert best.Tries(graph, parts, 528, 1, IN_TURNS).found()
    assert not best.Tries(graph, parts, 528, 1, SIDE_BY_SIDE).found()


def test_the_bound_is_both_times() -> None:
    """1,200 products and 456 B, by hand."""
    chain = Chain("net", (12, 12, 1))
    chain.conv(1, 3)
    chain.dense(3)
    graph = chain.graph()
    rates = Rates(1.0, Transfers(3.0), Transfers(2.0), dma=False)
    bound = lower_bound(layers(graph), graph, 300, rates, 1)
    assert (bound.us, bound.by) == (1200 + 453 * 3 + 3 * 2, "cpu and io")
