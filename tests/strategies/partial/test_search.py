"""The searches against every derivation of the published rules, and against ordinary execution."""

from __future__ import annotations

import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.cost import cost
from pipeline.schedules.lower import needed
from pipeline.search.channels.network import Network
from pipeline.search.channels.rules import Reach, Rules
from pipeline.search.channels.search import Best, Search, TooManyStates, search
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.strategies import nets
from tests.strategies.nets import Net
from tests.strategies.partial.brute import Brute
from tests.strategies.partial.networks import random_network
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick

WIDTHS = (8, 16, 32)


def found(graph: Graph, bits: int, kind: Search = "exact", reach: Reach = "orders") -> Best:
    network = Network.of(graph, graph.input, needed(graph), bits)
    return search(Rules(network, reach=reach), kind, 10**6)


def equals_brute_force(seed: int) -> None:
    graph, bits = random_network(seed), WIDTHS[seed % 3]
    best = found(graph, bits)
    assert (best.peak / 2, best.accumulated) == Brute(graph, bits).optimum()
    published = found(graph, bits, "pex")
    assert (published.peak, published.accumulated) >= (best.peak, best.accumulated)


@pytest.mark.parametrize("first", quick(1, range(0, 1300, 25), ci=2))
def test_exact_equals_every_derivation(first: int) -> None:
    for seed in range(first, first + 25):
        equals_brute_force(seed)


def test_some_networks_have_loops_and_some_widths_forbid_them() -> None:
    graphs = [random_network(seed) for seed in range(40)]
    looping = [
        sum(any(m.rule != "full" for m in found(g, bits).moves) for g in graphs) for bits in WIDTHS
    ]
    assert 10 < looping[2] <= looping[0] < 40


@pytest.mark.parametrize("kind", ["pex", "exact"])
@pytest.mark.parametrize("seed", range(30))
def test_never_above_ordinary(seed: int, kind: Search) -> None:
    graph = random_network(seed, 9)
    ordinary = cost(Ordinary().plan(graph, BOARD), graph, BOARD).pmu_bytes
    assert found(graph, 32, kind).peak / 2 <= ordinary
    best = found(graph, 32).peak
    assert best <= found(graph, 32, "exact", "given").peak <= found(graph, 32, "pex", "whole").peak


def wide() -> Graph:
    """Eight branches of two convolutions: too many orders to look at all."""
    net = Net((4, 4, 8))
    x = net.conv("input", 8)
    ends = [net.conv(net.conv(x, 16), 8) for _ in range(8)]
    while len(ends) > 1:
        ends = [net.add(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True)]
    return net.graph()


@pytest.mark.ci
def test_too_many_states_still_give_a_plan() -> None:
    graph = wide()
    network = Network.of(graph, graph.input, needed(graph), 8)
    with pytest.raises(TooManyStates):
        search(Rules(network), "exact", 500)
    plan = Partial().plan(graph, BOARD)
    ordinary = cost(Ordinary().plan(graph, BOARD), graph, BOARD)
    assert cost(plan, graph, BOARD).pmu_bytes <= ordinary.pmu_bytes


def test_published_algorithm_can_miss_the_least_peak() -> None:
    graph = random_network(1087)
    assert found(graph, WIDTHS[1087 % 3], "pex").peak > found(graph, WIDTHS[1087 % 3]).peak


def test_published_algorithm_can_accumulate_for_nothing() -> None:
    """One configuration a state: MicroNets with 16 bits accumulates a layer and gains nothing, as
    in the paper's table 4."""
    graph = nets.micronet_kws_l()
    pex, exact = found(graph, 16, "pex"), found(graph, 16)
    assert pex.peak == exact.peak == 2 * 69_000
    assert (pex.accumulated, exact.accumulated) == (1, 0)
