"""Lower bounds: against the best of all schedules of toys, and element by element."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from math import inf, prod

import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates, Transfers
from pipeline.search.swap.lower_bounds import before, lower_bound
from pipeline.search.view.tiles import TiledLayer, layers
from tests.strategies.swap.nets import Chain, alexnet, best_plan, paper_rates, random_chain


def toy(widths: tuple[int, ...]) -> tuple[Graph, tuple[TiledLayer, ...]]:
    """Dense layers, the first of which works like a convolution: with each weight 12 times."""
    chain = Chain("toy", (1, 1, widths[0]))
    for width in widths[1:]:
        chain.dense(width)
    first, *rest = layers(chain.graph())
    return chain.graph(), (replace(first, work=12 * first.work), *rest)


Row = tuple[int, int]
"""Row of weights: the number of the layer, and of the row."""


def orders(parts: tuple[TiledLayer, ...]) -> Iterator[tuple[Row, ...]]:
    """All orders in which rows may be read. Those of one layer are alike: one order is enough."""
    layer_of = [n for n, layer in enumerate(parts) for _ in range(layer.channels)]
    for order in set(permutations(layer_of)):
        seen = Counter[int]()
        rows = list[Row]()
        for layer in order:
            rows.append((layer, seen[layer]))
            seen[layer] += 1
        yield tuple(rows)


def least_us(parts: tuple[TiledLayer, ...], sram_bytes: int, rates: Rates) -> float:
    """The fastest of all schedules, whatever the order of reading. Activations take no room, and
    writing no time; a row of weights keeps its place from its read to its use."""
    return min(makespan_us(parts, sram_bytes, rates, order) for order in orders(parts))


def makespan_us(
    parts: tuple[TiledLayer, ...], sram_bytes: int, rates: Rates, order: tuple[Row, ...]
) -> float:
    """Everything as soon as it can be; infinite where rows that are there wait for others."""
    uses, arrived, held = sorted(order), dict[Row, float](), list[Row]()
    clock, card = 0.0, prod(parts[0].sources[0].shape) * rates.read.byte_us

    def use() -> None:
        nonlocal clock
        layer = parts[uses[0][0]]
        clock = max(clock, arrived[uses[0]]) + rates.compute_us(layer.work / layer.channels)
        held.remove(uses.pop(0))

    for row in order:
        size = parts[row[0]].row_bytes
        while sum(parts[n].row_bytes for n, _ in held) + size > sram_bytes:
            if uses[0] not in held:
                return inf
            use()
            card = max(card, clock)
        card += size * rates.read.byte_us
        arrived[row] = card
        held.append(row)
    while uses:
        use()
    return clock


@pytest.mark.parametrize("widths", [(2, 3, 3), (3, 2, 2, 2), (1, 4, 2, 1), (2, 3, 5), (2, 6)])
def test_no_schedule_of_a_toy_is_below(widths: tuple[int, ...]) -> None:
    graph, parts = toy(widths)
    for sram, us, read_us in product((5, 8, 12), (0.02, 0.1, 0.5), (0.5, 2.0)):
        rates = Rates(us, Transfers(read_us), Transfers(0.0))
        bound = lower_bound(parts, graph, sram, rates, 1)
        assert bound.us <= least_us(parts, sram, rates) * (1 + 1e-9)


def test_the_bounds_by_hand() -> None:
    """900 products of a convolution, then 300 - 30 B at 3 us, then the output's last byte; all
    products are 1,200, and reading and writing everything once takes 453 x 3 + 3 x 2 us."""
    chain = Chain("net", (12, 12, 1)).conv(1, 3).dense(3)
    graph, rates = chain.graph(), Rates(1.0, Transfers(3.0), Transfers(2.0))
    parts = layers(graph)
    bound = lower_bound(parts, graph, 30, rates, 1)
    assert (bound.us, bound.by, bound.cpu_us) == (900 + 270 * 3 + 2, "weights", 1200)
    assert bound.overhead_pct == pytest.approx(100 * (1712 / 1200 - 1))
    roomy = lower_bound(parts, graph, 300, rates, 1)
    assert (roomy.us, roomy.by) == (453 * 3 + 3 * 2, "io")
    turns = lower_bound(parts, graph, 300, replace(rates, dma=False), 1)
    assert (turns.us, turns.by) == (1200 + 453 * 3 + 3 * 2, "cpu and io")


def test_the_bound_on_a_card_by_hand() -> None:
    """A byte read takes 3 us, a quarter of a block's 8 and a thirtieth of a command's 60; the
    output's last byte a command and a block of 4 B."""
    chain = Chain("net", (12, 12, 1)).conv(1, 3).dense(3)
    graph, read, write = chain.graph(), Transfers(3.0, 60.0, 8.0), Transfers(2.0, 40.0, 4.0)
    weights, quick, slow = (
        lower_bound(layers(graph), graph, sram, Rates(us, read, write, 4), 1)
        for sram, us in ((30, 2.0), (30, 0.1), (300, 90.0))
    )
    assert (weights.us, weights.by) == (1800 + 270 * 7 + 4 * 2 + 40 + 4, "weights")
    assert quick.by == "io" and quick.us == pytest.approx(453 * 7 + 3 * (2 + 1 + 40 / 30))
    assert (slow.us, slow.by) == (1200 * 90 + (60 + 8 + 12) + (40 + 4 + 8), "path")


def made_of(parts: tuple[TiledLayer, ...], element: tuple[int, int, int]) -> float:
    """The work that one element of the last target needs done before it, element by element."""
    wanted, total = {element}, 0.0
    for number, layer in reversed(list(enumerate(parts))):
        rows, columns, channels = layer.shape
        if number < len(parts) - 1:
            total += layer.work / (rows * columns * channels) * len(wanted)
        shape = layer.sources[0].shape
        image = shape if len(shape) == 3 else (1, 1, *shape)
        found = set[tuple[int, int, int]]()
        for row, column, channel in wanted:
            if layer.sources[0].windows is None:
                found |= set(product(*map(range, image)))
                break
            taps = [
                [w.span(o, o + 1)[0] + t * w.dilation for t in range(w.count)]
                for w, o in zip(layer.sources[0].windows, (row, column), strict=True)
            ]
            inside = [[t for t in ts if 0 <= t < n] for ts, n in zip(taps, image[:2], strict=True)]
            depth = [channel] if layer.channelwise else range(image[2])
            found |= set(product(*inside, depth))
        wanted = found
    return total


@pytest.mark.parametrize("seed", range(6))
def test_the_least_work_before_a_layer(seed: int) -> None:
    parts = layers(random_chain(seed))
    for number in range(1, len(parts)):
        upto = parts[: number + 1]
        rows, columns, _ = upto[-1].shape
        every = min(made_of(upto, (r, c, 0)) for r in range(rows) for c in range(columns))
        assert before(upto) == pytest.approx(every)


def test_all_work_comes_before_a_dense_layer() -> None:
    parts = layers(alexnet())
    tail = [n for n, layer in enumerate(parts) if layer.sources[0].windows is None]
    for number in tail:
        whole = sum(layer.work for layer in parts[:number])
        assert before(parts[: number + 1]) == pytest.approx(whole, rel=0.03)
        assert before(parts[: number + 1]) <= whole * (1 + 1e-12)


@pytest.mark.slow
def test_alexnet_is_at_its_floor() -> None:
    """58.6 MB of dense weights are read after the convolutions, but for what SRAM holds."""
    graph = alexnet()
    notes = dict(best_plan(graph, 524288, 1, paper_rates(graph)).notes)
    assert notes["bound_by"] == "weights"
    assert 53 < float(notes["bound_overhead_pct"]) < 56
    assert 1 <= float(notes["makespan_us"]) / float(notes["bound_us"]) <= 1.02
