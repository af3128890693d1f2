"""SwapNN's scheduler: the published figures, and plans that compute what the graph computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates, Transfers
from pipeline.plan.vocabulary import Plan, PlanError
from pipeline.search.swap import swapnn
from tests.strategies.swap.nets import (
    SECONDS,
    alexnet,
    checked,
    mobilenet,
    paper_rates,
    random_chain,
    swapnn_plan,
    vgg16,
)

KIB = 1024


def planned(graph: Graph, sram_kib: int, frames: int) -> Plan:
    return swapnn_plan(graph, sram_kib * KIB, 128 * KIB, frames, paper_rates(graph))


@pytest.mark.parametrize(
    ("network", "overhead"), [(vgg16, 5.1), (alexnet, 58.9), (mobilenet, 52.7)]
)
def test_latency_at_512_kib(network: Callable[[], Graph], overhead: float) -> None:
    """Algorithm 1 as it was simulated for this project: in percent of the time to compute."""
    graph = network()
    seconds = dict(planned(graph, 512, 1).notes)["expected_makespan_us"]
    assert isinstance(seconds, float)
    assert 100 * (seconds / 1e6 / SECONDS[graph.name] - 1) == pytest.approx(overhead, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "loss"), [(vgg16, 2.9), (alexnet, 11.0), (mobilenet, 3.9)])
def test_loss_over_ten_frames_at_8_mib(network: Callable[[], Graph], loss: float) -> None:
    graph = network()
    seconds = dict(planned(graph, 8192, 10).notes)["expected_makespan_us"]
    assert isinstance(seconds, float)
    lost = 100 * (1 - 10 * SECONDS[graph.name] / (seconds / 1e6))
    assert lost == pytest.approx(loss, abs=3)


@pytest.mark.slow
def test_a_plan_of_75_831_tasks_is_small() -> None:
    graph = vgg16()
    rates = paper_rates(graph)
    plan = swapnn_plan(graph, 512 * KIB, 16 * KIB, 1, rates)
    assert dict(plan.notes)["io_tasks"] == 75_831
    assert sum(len(track.steps) for track in plan.tracks) < 8_000


SMALL, LARGE = (128, 200, 256, 512, 700, 1024), (1024, 2048)
"""Bytes of a buffer."""


def computes_what_the_graph_computes(seed: int, sizes: tuple[int, ...]) -> bool:
    """A random chain with random buffers, times and frames; False where tiles cannot be cut."""
    graph, rng = random_chain(seed), np.random.default_rng(seed + 10_000)
    buffer_bytes = int(rng.choice(sizes))
    sram_bytes = buffer_bytes * int(rng.choice([4, 5, 8, 11]))
    frames = int(rng.choice([1, 1, 2, 3]))
    rates = Rates(float(rng.choice([0.01, 0.1, 1])), Transfers(0.2), Transfers(0.3))
    try:
        plan = swapnn_plan(graph, sram_bytes, buffer_bytes, frames, rates)
    except ThimbleError as error:
        assert not isinstance(error, PlanError)
        return False
    assert checked(plan, graph, seed) <= sram_bytes
    return True


def test_random_networks() -> None:
    assert sum(computes_what_the_graph_computes(seed, LARGE) for seed in range(12)) > 8


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 340, 20))
def test_many_random_networks(start: int) -> None:
    seeds = range(start, start + 20)
    assert sum(computes_what_the_graph_computes(seed, SMALL) for seed in seeds) > 10


def test_fewer_output_than_input_buffers_are_refused() -> None:
    with pytest.raises(ThimbleError, match=r"pools=\[2, 1, 1\] can deadlock: with fewer output"):
        swapnn.pools(1 << 20, 1 << 14, (2, 1, 1))


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(ThimbleError, match="every pool needs buffers"):
        swapnn.pools(1 << 20, 1 << 14, (0, 2, 1))


def test_too_little_sram_for_the_pools_gives_the_fewest_buffers() -> None:
    for sram in (0, 100, 511, 512):
        assert swapnn.pools(sram, 128, (1, 2, 1)) == (128, 1, 2, 1)
    assert swapnn.pools(1000, 128, (1, 4, 2)) == (128, 1, 4, 2)


def test_an_order_without_room_deadlocks_and_says_so() -> None:
    from pipeline.search.swap.algorithm1 import Algorithm1
    from pipeline.search.swap.cuts import cut
    from pipeline.search.swap.layers import layers
    from pipeline.search.swap.tiles import tilings

    cuts = [cut(each) for each in tilings(layers(random_chain(3)), 512)]
    with pytest.raises(ThimbleError, match="Algorithm 1 deadlocks"):
        Algorithm1(cuts, 1, (1, 2, 0), lambda *_: 1.0).run()
