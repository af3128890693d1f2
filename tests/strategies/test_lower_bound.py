"""No plan that computes nothing twice holds less than the bound, whatever it is made of."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.cost import timeline
from pipeline.schedules.lower import needed
from pipeline.search.lower_bound import lower_bound
from pipeline.strategies.base import Strategy
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.graphs import random_graph
from tests.search.every_order import given_to, least, units_of
from tests.strategies import nets
from tests.strategies.nets import Net
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick


def bound(graph: Graph, streamed: bool = False) -> float:
    return lower_bound(graph, needed(graph), streamed).bytes


def held(strategy: Strategy, graph: Graph, streamed: bool) -> float:
    plan = strategy.plan(graph, replace(BOARD, streams_input=streamed))
    return max(moment.live_bytes for moment in timeline(plan))


@pytest.mark.parametrize("streamed", [False, True], ids=["held", "streamed"])
@pytest.mark.parametrize("seed", quick(3, range(120), ci=1))
def test_no_plan_of_a_random_network_holds_less(seed: int, streamed: bool) -> None:
    """By rows, whole, or by channels one by one."""
    graph = random_graph(seed)
    least = bound(graph, streamed)
    for strategy in (Joint(), Ordinary(), Partial(), Partial(channels=1)):
        assert least <= held(strategy, graph, streamed), strategy.name


@pytest.mark.parametrize(
    ("graph", "least", "streamed"),
    [
        (lambda: nets.ds_cnn((64,) * 5), 2_926, 2_496),
        pytest.param(nets.resnet8, 4_189, 2_048, marks=pytest.mark.slow),
        pytest.param(nets.mobilenet_v1_vww, 27_648, 4_608, marks=pytest.mark.slow),
    ],
    ids=["ds_cnn", "resnet8", "mobilenet_v1_vww"],
)
def test_networks_of_mlperf_tiny(graph: Callable[[], Graph], least: float, streamed: float) -> None:
    network = graph()
    assert (bound(network), bound(network, True)) == (least, streamed)


def test_a_dense_layer_holds_its_inputs_or_its_sums() -> None:
    """40 inputs; or 5 sums of 4 bytes each, which take inputs one by one as they stream in."""
    net = Net((1, 1, 40))
    net.dense("input", 5)
    graph = net.graph()
    assert (bound(graph), bound(graph, True)) == (40, 5)
    net = Net((1, 1, 3))
    net.dense(net.conv("input", 40), 5)
    assert bound(net.graph()) == 20


def test_it_is_no_more_than_the_least_over_all_orders_of_pixels() -> None:
    net = Net((4, 1, 1))
    net.conv(net.conv("input", 1, 3), 1, 3)
    first, second = net.operators
    units = [*units_of(first, net.tensors), *units_of(second, net.tensors)]
    least_bytes = least(units, given_to(first, net.tensors)) / 2
    assert bound(net.graph()) == 4 <= least_bytes == 5
