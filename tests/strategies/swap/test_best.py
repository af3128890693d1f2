"""The scheduler ``best``: times against bound and published floor; right plans of any network."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.rates import Rates, Transfers
from pipeline.search.swap import best, search
from pipeline.search.swap.segments import Segment
from pipeline.search.view.tiles import layers
from tests.strategies.nets import Net, grown, joined
from tests.strategies.swap.nets import Chain, best_plan, checked
from tests.tiers import quick

READ, WRITE = Transfers(0.2, 3.0), Transfers(0.3, 5.0)


def makespan_us(graph: Graph, sram_bytes: int, rates: Rates) -> float:
    """Not below the bound."""
    notes = dict(best_plan(graph, sram_bytes, 1, rates).notes)
    assert float(notes["makespan_us"]) >= float(notes["bound_us"]) > 0
    return float(notes["makespan_us"])


@pytest.mark.ci
def test_a_small_mobilenet_is_near_its_bound() -> None:
    """In a fifth of what its feature maps and weights take."""
    chain = Chain("small", (24, 24, 3)).conv(8, 3, 2, 1)
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (96, 1)):
        chain.conv(chain.shape_now[2], 3, stride, 1, depthwise=True)
        chain.conv(channels, 1)
    graph = chain.average().dense(60).graph()
    notes = dict(best_plan(graph, 6000, 1, Rates(0.002, READ, WRITE)).notes)
    assert 1 <= float(notes["makespan_us"]) / float(notes["bound_us"]) <= 1.05


def pointwise() -> tuple[Graph, Rates]:
    """Weights as large as the memory, and rows a tenth of it."""
    return Chain("net", (12, 12, 64)).conv(96, 1).graph(), Rates(
        0.01, Transfers(0.1, 50.0), Transfers(0.1, 50.0)
    )


def test_one_place_for_rows_leaves_room_for_larger_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that weights are read less often."""
    graph, rates = pointwise()
    found_us, forms = makespan_us(graph, 6400, rates), search.places_of_rows
    monkeypatch.setattr(search, "places_of_rows", lambda each: (next(iter(forms(each))),))
    assert found_us < 0.9 * makespan_us(graph, 6400, rates)


def test_places_are_those_that_a_segment_has_use_for() -> None:
    parts, rates = layers(pointwise()[0]), pointwise()[1]
    found = search.Search(parts, rates)
    rings = found.ring(0, 0, 3)
    stored = Segment(parts, rings, "", "stored")
    sizes = [each.needed_bytes for each in search.places_of_rows(stored)]
    source, target = 3 * 12 * 64, 3 * 12 * 96
    assert [sizes[0] - size for size in sizes] == [0, target, source, source + target]
    ways = [each.times(rates) for each in search.places_of_rows(stored)]
    assert ways[3].busy - ways[3].cpu >= ways[1].waits + ways[2].waits > ways[1].waits > 0
    whole = found.ring(0, 0, 12)
    at_once = Segment(parts, whole, "", "stored")
    assert list(search.places_of_rows(at_once)) == [at_once]


def test_other_weight_tiles_make_a_faster_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as have room while the convolution runs, before the dense layer that waits for it."""
    chain = Chain("net", (16, 16, 8)).conv(16, 3, 1, 1).average().dense(400)
    graph, rates = chain.graph(), Rates(0.01, Transfers(0.5), Transfers(0.5))
    found_us = makespan_us(graph, 12_000, rates)
    monkeypatch.setattr(best, "TASKS", 0)
    assert found_us < makespan_us(graph, 12_000, rates)


def by_tile() -> Graph:
    """Build one where a tile of the first layer's channels, with all made of it, has room."""
    net = Chain("net", (6, 6, 32)).conv(40, 1).conv(40, 3, 1, 1, depthwise=True).average()
    return net.dense(300).graph(np.random.default_rng(3))


@pytest.mark.ci
def test_channels_of_a_tile_go_through_all_layers_that_need_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(best, "TASKS", 0)
    graph, rates = by_tile(), Rates(0.01, Transfers(0.5), Transfers(0.5))
    plan = best_plan(graph, 2400, 1, rates)
    around = {b.tensor for b in plan.buffers if b.memory == "sram" and b.wrap and b.wrap[-1]}
    assert {op.output for op in graph.operators[:2]} <= around
    checked(plan, graph)


# --- a core that makes a card's transfers itself: nothing goes on beside anything

SIDE_BY_SIDE = Rates(0.1, READ, WRITE)
IN_TURNS = replace(SIDE_BY_SIDE, dma=False)


def test_needs_no_second_place_for_weights() -> None:
    """A dense layer's input, a row of weights and the output; with DMA the next row, too."""
    graph = Chain("net", (8, 8, 4)).dense(5).graph()
    parts = layers(graph)
    assert search.Search(parts, SIDE_BY_SIDE).least_bytes == 256 + 2 * 256 + 16
    assert search.Search(parts, IN_TURNS).least_bytes == 256 + 256 + 16
    assert best.Tries(graph, parts, 528, 1, IN_TURNS).found()
    assert not best.Tries(graph, parts, 528, 1, SIDE_BY_SIDE).found()


def residual(seed: int = 0) -> Graph:
    """Blocks of ResNet: shortcuts as they are, and by a convolution at stride 2."""
    net = Net((11, 9, 3), seed)
    x = net.maximum(net.conv("input", 6, 3))
    x = net.lookup(net.add(net.conv(net.conv(x, 6, 3), 6, 3), x))
    y = net.conv(net.conv(x, 12, 3, 2), 12, 3)
    x = net.lookup(net.add(y, net.conv(x, 12, 1, 2)))
    net.dense(net.average(x), 5)
    return net.graph()


def inception(seed: int = 0) -> Graph:
    """Four branches that meet in a concatenation, then two; what pools keeps the size."""
    net, x = Net((10, 8, 4), seed), "input"
    one, three = net.lookup(net.conv(x, 3)), net.conv(net.conv(x, 4), 5, 3)
    five = net.conv(net.conv(x, 2), 3, 5)
    x = net.concat(one, three, five, net.conv(net.maximum(x, 1, 1), 2))
    x = net.concat(net.conv(x, 5), net.conv(x, 4, 3))
    net.softmax(net.dense(net.average(x), 7))
    return net.graph()


def squeezed(seed: int = 0) -> Graph:
    """A gate of one pixel for an image, groups of channels, a tensor that is read much later."""
    net = Net((9, 9, 4), seed)
    x = net.inverted("input", 4, 2, 3, 1, squeeze=2)
    y = net.conv(net.conv(x, 6, 3, 2), 8, 3, dilation=2, groups=2)
    late = net.average(x)
    net.add(net.dense(y, 5), net.dense(late, 5))
    return net.graph()


KINDS = (*["conv"] * 2, "add", "concat", "maximum", "depthwise", "lookup", "gate")


def random_network(seed: int) -> Graph:
    """Every layer reads any of the layers before, of its size where it has to be."""
    rng, net = np.random.default_rng(seed), Net((int(8 + seed % 5), 7, 3), seed)
    ends = grown(net, rng, KINDS, range(1, 12), (1, 3, 5), int(rng.integers(4, 12)))
    return net.graph(joined(net, [net.dense(end, 6) for end in ends]))


def is_right(graph: Graph, share: float, frames: int = 1, work_us: float = 0.1) -> bool:
    """Check whether it fits in this share of its tensors; what is planned is right in any case."""
    size = sum(tensor.size for tensor in graph.tensors.values())
    rates = Rates(work_us, Transfers(0.2, 3.0), Transfers(0.3, 5.0))
    plan = best_plan(graph, int(size * share), frames, rates)
    fits = roomy(plan).memories == plan.memories
    plan, notes = roomy(plan), dict(plan.notes)
    assert float(notes["makespan_us"]) >= float(notes["bound_us"]) > 0
    assert checked(plan, graph) <= plan.memory["sram"].bytes
    return fits


NETWORKS: tuple[Callable[[int], Graph], ...] = (residual, inception, squeezed)
PARTS = ((residual, 4), (inception, 4), (squeezed, 4), (residual, 1))


@pytest.mark.parametrize(
    ("network", "part"), quick(1, [*PARTS, *product((inception, squeezed), (2, 1))], ci=3)
)
def test_branches_are_right(network: Callable[[int], Graph], part: int) -> None:
    is_right(network(0), 1 / part)


@pytest.mark.parametrize("network", quick(0, NETWORKS, ci=1))
def test_several_frames_are_right(network: Callable[[int], Graph]) -> None:
    assert is_right(network(1), 2, frames=3)


@pytest.mark.parametrize("seed", quick(2, range(30), ci=6))
def test_random_networks_are_right(seed: int) -> None:
    is_right(random_network(seed), 1 / (1 + seed % 4), work_us=(0.01, 1.0)[seed % 2])
