"""The scheduler ``best``: times against the bound and the published floor, and right plans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.rates import Rates, Transfers
from pipeline.search.swap import best, search
from pipeline.search.swap.build import Builder
from pipeline.search.swap.layers import layers
from pipeline.search.swap.segments import Rings, Segment, needed, turns
from tests.strategies.swap.bench_card import on_card
from tests.strategies.swap.nets import (
    SECONDS,
    Chain,
    alexnet,
    best_plan,
    checked,
    mobilenet,
    paper_rates,
    random_chain,
    vgg16,
)
from tests.tiers import quick

KIB = 1024


def seconds(graph: Graph, sram_kib: int, frames: int) -> float:
    notes = dict(best_plan(graph, sram_kib * KIB, frames, paper_rates(graph)).notes)
    makespan_us, bound_us = float(notes["makespan_us"]), float(notes["bound_us"])
    assert makespan_us >= bound_us
    return makespan_us / 1e6


@pytest.mark.slow
@pytest.mark.parametrize(("network", "most"), [(mobilenet, 4.2), (alexnet, 56.0), (vgg16, 3.5)])
def test_latency_at_512_kib(network: Callable[[], Graph], most: float) -> None:
    graph = network()
    assert 100 * (seconds(graph, 512, 1) / SECONDS[graph.name] - 1) <= most


@pytest.mark.ci
def test_a_small_mobilenet_is_near_its_bound() -> None:
    """In a fifth of what its feature maps and weights take."""
    chain = Chain("small", (24, 24, 3))
    chain.conv(8, 3, 2, 1)
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (96, 1)):
        chain.conv(chain.shape_now[2], 3, stride, 1, depthwise=True)
        chain.conv(channels, 1)
    chain.average(3)
    chain.dense(60)
    rates = Rates(0.002, Transfers(0.2, 3.0), Transfers(0.3, 5.0))
    notes = dict(best_plan(chain.graph(), 6000, 1, rates).notes)
    assert 1 <= float(notes["makespan_us"]) / float(notes["bound_us"]) <= 1.05


@pytest.mark.slow
@pytest.mark.parametrize(("network", "most"), [(vgg16, 1.0), (alexnet, 1.0), (mobilenet, 1.0)])
@pytest.mark.parametrize("sram_kib", [512, 8192])
def test_loss_over_ten_frames(network: Callable[[], Graph], most: float, sram_kib: int) -> None:
    graph = network()
    if sram_kib == 512:
        most *= 2
    assert 100 * (1 - 10 * SECONDS[graph.name] / seconds(graph, sram_kib, 10)) <= most


def computes_what_the_graph_computes(seed: int) -> bool:
    """A random chain with random memory, times and frames, in more memory where that is too little:
    whether it was enough."""
    graph, rng = random_chain(seed), np.random.default_rng(seed + 20_000)
    sram_bytes = int(rng.choice([400, 700, 1500, 3000, 8000]))
    frames = int(rng.choice([1, 1, 2, 3]))
    rates = Rates(float(rng.choice([0.01, 0.1, 1])), Transfers(0.2, 3.0), Transfers(0.3, 5.0))
    given = best_plan(graph, sram_bytes, frames, rates)
    plan = roomy(given)
    notes = dict(plan.notes)
    assert float(notes["makespan_us"]) >= float(notes["bound_us"]) > 0
    fits = plan.memories == given.memories
    assert (checked(plan, graph, seed) <= sram_bytes) == fits
    return fits


FEW = (3, 8, 17, 14, 16, 12, 10, 9, 6, 0)
"""Seeds of chains that are planned within a moment, one of which needs more memory."""


@pytest.mark.parametrize("seed", quick(2, FEW, ci=4))
def test_rows_may_have_one_place_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that arrive, and those that leave, wait for computing and are waited for."""
    forms = search.places_of_rows
    monkeypatch.setattr(search, "places_of_rows", lambda each: (list(forms(each))[-1],))
    computes_what_the_graph_computes(seed)


def pointwise() -> tuple[Graph, Rates]:
    """Weights as large as the memory, and rows a tenth of it."""
    chain = Chain("net", (12, 12, 64))
    chain.conv(96, 1)
    return chain.graph(), Rates(0.01, Transfers(0.1, 50.0), Transfers(0.1, 50.0))


def makespan_us(graph: Graph, rates: Rates) -> float:
    return float(dict(best_plan(graph, 6400, 1, rates).notes)["makespan_us"])


def test_one_place_for_rows_leaves_room_for_larger_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that weights are read less often."""
    graph, rates = pointwise()
    found_us, forms = makespan_us(graph, rates), search.places_of_rows
    monkeypatch.setattr(search, "places_of_rows", lambda each: (next(iter(forms(each))),))
    assert found_us < 0.9 * makespan_us(graph, rates)


def test_places_are_those_that_a_segment_has_use_for() -> None:
    parts, rates = layers(pointwise()[0]), pointwise()[1]
    found = search.Search(parts, 6400, rates)
    rings = found.ring(0, 0, 3)
    stored = Segment(parts, rings, rings.outside, "stored", "stored")
    sizes = [each.needed_bytes for each in search.places_of_rows(stored)]
    source, target = 3 * 12 * 64, 3 * 12 * 96
    assert [sizes[0] - size for size in sizes] == [0, target, source, source + target]
    ways = [each.busy_us(rates) - stored.cpu_us(rates) for each in search.places_of_rows(stored)]
    assert ways[3] >= stored.arrives_us(rates) + stored.leaves_us(rates) > 0
    whole = found.ring(0, 0, 12)
    at_once = Segment(parts, whole, whole.outside, "stored", "stored")
    assert list(search.places_of_rows(at_once)) == [at_once]


def test_other_weight_tiles_make_a_faster_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as have room while the convolution runs, before the dense layer that waits for it."""
    chain = Chain("net", (16, 16, 8))
    chain.conv(16, 3, 1, 1)
    chain.average(16)
    chain.dense(400)
    graph, rates = chain.graph(), Rates(0.01, Transfers(0.5), Transfers(0.5))
    found_us = dict(best_plan(graph, 12_000, 1, rates).notes)["makespan_us"]
    monkeypatch.setattr(best, "TASKS", 0)
    assert float(found_us) < float(dict(best_plan(graph, 12_000, 1, rates).notes)["makespan_us"])


def by_tile() -> Graph:
    """Of the first layer's channels a tile at a time has room, with all that is made of it."""
    chain = Chain("net", (6, 6, 32))
    chain.conv(40, 1)
    chain.conv(40, 3, 1, 1, depthwise=True)
    chain.average(6)
    chain.dense(300)
    return chain.graph(np.random.default_rng(3))


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


def test_tiles_of_the_next_segment_arrive_among_those_of_the_one_before() -> None:
    """Where it needs no more of the memory, though all of its own tiles are not there yet."""
    graph, rates = by_tile(), Rates(0.01, Transfers(0.05), Transfers(0.05))
    parts = layers(graph)
    rings = Rings.of(parts[:3], 1), Rings.of(parts[3:], 1)
    one = Segment(parts[:3], rings[0], rings[0].outside, "stored", "kept", 0, 4)
    two = Segment(parts[3:], rings[1], rings[1].outside, "kept", "stored", 0, 20, 6)
    builder = Builder(graph, 9000, rates)
    builder.run([one, two], [0], 9000)
    reads = [task.act() for task in builder.queues.tasks["read"]]
    order = [builder.windows[act.window].tensor.name for act in reads]
    first, last = parts[0].weight, parts[3].weight
    assert order.index(last) < len(order) - 1 - order[::-1].index(first)
    assert (order.count(first), order.count(last)) == (10, 15)


@pytest.mark.ci
def test_random_networks() -> None:
    assert sum(computes_what_the_graph_computes(seed) for seed in FEW) == 9


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 340, 20))
def test_many_random_networks(start: int) -> None:
    assert sum(computes_what_the_graph_computes(seed) for seed in range(start, start + 20)) > 10


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 16])
def test_turns_compute_each_needed_row_once_and_in_order(chunk: int) -> None:
    chain = Chain("net", (37, 9, 2))
    chain.conv(4, 3, 2, 1)
    chain.conv(4, 3, 1, 1, depthwise=True)
    chain.maximum(3, 2)
    parts = layers(chain.graph())
    made = [0] * 3
    for turn in turns(parts, chunk):
        for n, (layer, (low, high)) in enumerate(zip(parts, turn.computes, strict=True)):
            assert low == min(made[n], high)
            made[n] = max(made[n], high)
            if low < high:
                assert turn.reads[n] == needed(layer, (low, high))
                assert n == 0 or turn.reads[n][0][1] <= made[n - 1]
    assert made[-1] == parts[-1].shape[0]


@pytest.mark.slow
def test_more_sram_is_not_slower() -> None:
    """On a card, where large segments left no room to read ahead."""
    found = [on_card(mobilenet(), sram_bytes)[0] for sram_bytes in (262_144, 320_000, 524_288)]
    times = [each["makespan_us"] for each in found]
    assert times == sorted(times, reverse=True)
