"""SwapNN's scheduler: the rule of its tiles, the published figures, and right plans."""

from collections.abc import Callable

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates, Transfers
from pipeline.plan.vocabulary import Plan, PlanError
from pipeline.search.swap import swapnn
from pipeline.search.swap.algorithm1 import Algorithm1
from pipeline.search.swap.tiling import tiling
from pipeline.search.view.tiles import chain, layers
from tests.graphs import Net
from tests.strategies.swap import nets
from tests.tiers import quick

KIB = 1024
NETWORKS = nets.vgg16, nets.alexnet, nets.mobilenet


@pytest.mark.parametrize(
    ("network", "at_16", "at_128"),
    quick(0, zip(NETWORKS, (75_831, 7_229, 3_997), (2_228, 545, 299), strict=True)),
)
def test_numbers_of_io_tasks(network: Callable[[], Graph], at_16: int, at_128: int) -> None:
    """Recomputed from the paper's rule; its own figure 7 says 85,024 and 2,248 for VGG16."""
    chain = layers(network())
    for buffer_bytes, number in ((16 * KIB, at_16), (128 * KIB, at_128)):
        cut = [tiling(layer, buffer_bytes) for layer in chain]
        inputs = [len(each.rows) * len(each.columns) * len(each.parts) for each in cut]
        tasks = (n * (2 + each.weights) for n, each in zip(inputs, cut, strict=True))
        assert sum(tasks) == number


def test_a_pixel_larger_than_a_buffer_is_refused() -> None:
    chain = nets.Chain("net", (4, 4, 4)).conv(300, 1)
    (layer,) = layers(chain.graph())
    with pytest.raises(ThimbleError, match=r"one pixel of conv2d0 has 300 B.*larger buffers"):
        tiling(layer, 300)


REFUSED: list[tuple[Callable[[Net], object], str]] = [
    (
        lambda net: net.plus(net.conv(4), net.conv(4)),
        "takes chains of convolutions.*; try strategy.scheduler=best",
    ),
    (lambda net: net.times(net.last, net.conv(4)), "a Multiply, reads .*=best"),
    (lambda net: net.conv(4, groups=2), "in groups of channels"),
]


@pytest.mark.parametrize(("add", "words"), REFUSED)
def test_other_topologies_and_operators_are_refused(
    add: Callable[[Net], object], words: str
) -> None:
    net = Net((8, 8, 4))
    add(net)
    with pytest.raises(ThimbleError, match=words):
        chain(net.graph())


def planned(graph: Graph, sram_kib: int, frames: int) -> tuple[Plan, float]:
    """In buffers of 128 KiB; and its seconds."""
    plan = nets.swapnn_plan(graph, sram_kib * KIB, 128 * KIB, frames, nets.paper_rates(graph))
    return plan, float(dict(plan.notes)["expected_makespan_us"]) / 1e6


@pytest.mark.slow
@pytest.mark.parametrize(("network", "loss"), [*zip(NETWORKS, (2.9, 11.0, 3.9), strict=True)])
def test_loss_over_ten_frames_at_8_mib(network: Callable[[], Graph], loss: float) -> None:
    graph = network()
    _, seconds = planned(graph, 8192, 10)
    assert 100 * (1 - 10 * nets.SECONDS[graph.name] / seconds) == pytest.approx(loss, abs=3)


@pytest.mark.slow
def test_a_plan_of_75_831_tasks_is_small() -> None:
    graph = nets.vgg16()
    plan = nets.swapnn_plan(graph, 512 * KIB, 16 * KIB, 1, nets.paper_rates(graph))
    assert dict(plan.notes)["io_tasks"] == 75_831
    assert sum(len(track.steps) for track in plan.tracks) < 8_000


SMALL, LARGE = (128, 200, 256, 512, 700, 1024), (1024, 2048)
"""Bytes of a buffer."""


@pytest.mark.parametrize(
    ("seeds", "sizes"), quick(1, [(range(12), LARGE), (range(100, 160), SMALL)], ci=0)
)
def test_random_networks(seeds: range, sizes: tuple[int, ...]) -> None:
    """Random chains with random buffers, times and frames, most of which can be cut into tiles."""
    done = 0
    for seed in seeds:
        graph, rng = nets.random_chain(seed), np.random.default_rng(seed + 10_000)
        buffer_bytes = int(rng.choice(sizes))
        sram_bytes = buffer_bytes * int(rng.choice([4, 5, 8, 11]))
        frames = int(rng.choice([1, 1, 2, 3]))
        rates = Rates(float(rng.choice([0.01, 0.1, 1])), Transfers(0.2), Transfers(0.3))
        try:
            plan = nets.swapnn_plan(graph, sram_bytes, buffer_bytes, frames, rates)
        except ThimbleError as error:
            assert not isinstance(error, PlanError)
            continue
        assert nets.checked(plan, graph, seed) <= sram_bytes
        done += 1
    assert done > 8


@pytest.mark.parametrize("buffer_bytes", [256, 700, 2048])
def test_functions_of_images_and_of_vectors(buffer_bytes: int) -> None:
    """As in LeNet-5."""
    net = Net((9, 9, 3))
    net.lookup(net.conv(20))
    net.lookup(net.maximum((2, 2)))
    for count in (40, 10):
        net.lookup(net.dense(count))
    graph, rates = net.graph(), Rates(0.1, Transfers(0.2), Transfers(0.3))
    plan = nets.swapnn_plan(graph, 5 * buffer_bytes, buffer_bytes, 2, rates)
    assert nets.checked(plan, graph, 0) <= 5 * buffer_bytes


def test_pools_that_deadlock_or_are_empty_are_refused() -> None:
    with pytest.raises(ThimbleError, match="every pool needs buffers"):
        swapnn.pools(1 << 20, 1 << 14, (0, 2, 1))
    cuts = [tiling(layer, 512) for layer in layers(nets.random_chain(3))]
    with pytest.raises(ThimbleError, match="Algorithm 1 deadlocks"):
        Algorithm1(cuts, 1, (1, 2, 0), lambda *_: 1.0).run()


def test_too_little_sram_for_the_pools_gives_the_fewest_buffers() -> None:
    for sram in (0, 100, 511, 512):
        assert swapnn.pools(sram, 128, (1, 2, 1)) == (128, 1, 2, 1)
    assert swapnn.pools(1000, 128, (1, 4, 2)) == (128, 1, 4, 2)
