"""The order of a layer in place is the best of all, where only one thing is asked of it: pixels of
one width, each with all its channels; so is that of a tiny block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.free_cells import Cells, Full
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.least import _least, least, turned_once
from pipeline.search.chains.liveness import peak_nibbles
from pipeline.search.chains.rectangle import Rectangle, peeling
from pipeline.search.chains.side import Side
from pipeline.search.chains.tiny import MOST, Tiny
from pipeline.search.chains.traversals import columns, ranks, rows, single_transposes
from pipeline.search.chains.weaves import Weave
from pipeline.search.chains.woven import Way, woven
from pipeline.strategies.herringbone import Herringbone
from tests.graphs import Net
from tests.search import in_place, staircases
from tests.search.in_place import KINDS, drawn
from tests.strategies.chains import Chain, board
from tests.strategies.peaks import arena_nibbles
from tests.strategies.proving import exact
from tests.tiers import quick

PIXELS = [
    *("square", "non-square kernels", "unequal strides", "same padding"),
    *("same padding, strides", "dilation", "1x1", "anything"),
]


def layer_of(chain: Chain) -> Layer:
    return Layer(chain.operators[0], chain.tensors)


@pytest.mark.parametrize("kind", quick(2, PIXELS, ci=0))
def test_no_order_is_better(kind: str) -> None:
    better = 0
    for number in range(3 if kind in PIXELS[:2] else 100):
        chain, optimum = drawn(kind, number)
        layer = layer_of(chain)
        if layer.outputs.nibbles_per_element > layer.inputs.nibbles_per_element:
            continue  # both halves of a byte have to be dead
        order = ranks(*layer.outputs[:2], least(layer))
        assert sorted(order.reshape(-1)) == list(range(layer.outputs.number))
        found = peak_nibbles(layer, order)
        assert found == optimum, number
        better += found < peak_nibbles(layer, ranks(*layer.outputs[:2], rows(*layer.outputs[:2])))
    assert better or kind in ("1x1", *PIXELS[:2])


def test_parts_that_share_nothing_one_after_the_other() -> None:
    """Every second row and column: four images in one, of which one after the other is shorter."""
    chain = Chain((6, 6, 2)).conv("y", 3, 3, dilation=(2, 2))
    layer = layer_of(chain)
    found = [pixel for line in least(layer) for pixel in line.pixels()]
    parts = [(y % 2, x % 2) for y, x in found]
    assert parts == sorted(parts, key=parts.index) and len(set(parts)) == 4


def test_wide_images_go_by_columns_and_long_ones_by_rows() -> None:
    for height, width in ((5, 20), (20, 5)):
        layer = layer_of(Chain((height, width, 4)).conv("y", 4, 3, padding=(1, 1, 1, 1)))
        by = (rows if width < height else columns)(height, width)
        peaks = [peak_nibbles(layer, ranks(height, width, order)) for order in (by, least(layer))]
        assert peaks[0] == peaks[1] < layer.inputs.total + (min(height, width) + 2) * 4


@pytest.mark.parametrize("kind", PIXELS)
def test_where_rows_turn_into_columns_takes_what_is_counted(kind: str) -> None:
    for number in range(10):
        layer = layer_of(next(in_place.several(kind, number)))
        height, width = layer.outputs[:2]
        counted = [
            peak_nibbles(layer, ranks(height, width, order))
            for order in single_transposes(height, width)
        ]
        assert turned_once(layer, width <= height).tolist()[::-1] == counted


def test_each_line_of_a_block_is_made_in_the_largest_steps_that_fit() -> None:
    """12 x 12 pixels: rows beyond the first few free more than they make."""
    chain = Chain((12, 12, 8), "int8")
    chain.conv("d", 8, 3, "int8", 8, padding=(1, 1, 1, 1)).conv("y", 4, 1, "int8")
    flow, span = Flow(tuple(chain.operators), chain.tensors, "image", "y"), Span(0, 2)
    by_row, *_, by_pairs = Weave.by_rows(flow, span)
    (rows_only,), (mixed,) = by_row.within(by_row.peak), by_pairs.within(by_pairs.peak)
    alone = woven(flow, span, Way(2))
    assert mixed.peak == alone.peak < rows_only.peak
    assert len(rows_only.starts) < len(mixed.starts) < len(alone.starts)
    assert sorted(map(tuple, mixed.order)) == sorted(map(tuple, alone.order))
    assert by_pairs.within(rows_only.peak) == (rows_only,)


def test_large_rectangles_are_peeled_at_each_corner(monkeypatch: pytest.MonkeyPatch) -> None:
    """As good as from all sides, from wherever padding is: below, above, or nowhere."""
    even = Side(np.array([[a <= b <= a + 2 for b in range(9)] for a in range(7)]))
    padded = Side(even.reads[:, :8])
    assert even.even and not padded.even
    for sides in ((even, even), (padded, even), (padded.flipped, padded), (even, padded.flipped)):
        every, least_of_all = Rectangle(*sides, 4, 7).cuts()
        monkeypatch.setattr("pipeline.search.chains.rectangle.MOST", 0)
        cuts, found = peeling(*sides, 4, 7)
        assert found == least_of_all and len({(cut.by_row, cut.at_end) for cut in cuts}) <= 2
        assert sum(cut.thickness for cut in every) >= 7


def test_what_is_peeled_at_a_corner_takes_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.search.chains.rectangle.MOST", 0)
    for number in range(20):
        layer = layer_of(staircases.drawn("same padding, strides", number))
        _least.cache_clear()
        size = layer.outputs[:2]
        order = ranks(*size, least(layer))
        assert sorted(order.reshape(-1)) == list(range(layer.outputs.number))
        assert peak_nibbles(layer, order) <= peak_nibbles(layer, ranks(*size, rows(*size)))
    _least.cache_clear()


@pytest.mark.parametrize("kind", quick(2, KINDS, ci=0))
def test_arenas_are_the_least_of_all_orders(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 and 8 bits and from one to the other, planned with ``herringbone``; never above rows."""
    cases = "3" if kind in PIXELS[:2] else "100"
    monkeypatch.setattr("sys.argv", ["in_place", kind, "--cases", cases])
    with pytest.raises(SystemExit) as end:
        in_place.compare(in_place.judged, KINDS, 100, KINDS)
    assert end.value.code == 0


@pytest.mark.parametrize("kind", quick(1, staircases.KINDS, ci=0))
def test_larger_layers_are_as_good_as_staircases(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = "3" if kind == staircases.KINDS[0] else "150"
    monkeypatch.setattr("sys.argv", ["staircases", kind, "--cases", cases])
    with pytest.raises(SystemExit) as end:
        in_place.compare(staircases.judged, KINDS, 150, staircases.SURE)
    assert end.value.code == 0


# --- tiny blocks of several operators: the best of all orders of their pixels

BLOCK = (2, 2, 6)
"""Where the sum's first pixel is made before the last one of the first convolution, the input's
first one dies with that."""


def block() -> Graph:
    net = Net(BLOCK, np.random.default_rng(0))
    image = net.image
    net.conv(3)
    net.plus(image, net.conv(6, (1, 1)))
    return net.graph()


def flow_of(chain: Chain) -> tuple[Flow, Span]:
    flow = Flow(tuple(chain.operators), chain.tensors, "image", "y")
    return flow, Span(0, len(chain.operators))


def test_an_order_that_no_weave_has() -> None:
    graph = block()
    flow = Flow(tuple(graph.operators), graph.tensors, graph.input, graph.output)
    (tiny,) = Tiny.of(flow, Span(0, 3))
    weaves = [each.peak for each in Weave.pixel_by_pixel(flow, Span(0, 3))]
    assert (tiny.peak, min(weaves)) == (72, 84)
    plan = Herringbone().plan(graph, board(streams=False, sram_bytes=1))
    assert arena_nibbles(plan) == 72
    assert exact(roomy(plan), graph).report.recomputed == {}


def test_where_there_is_room_steps_are_larger() -> None:
    plans = [Herringbone().plan(block(), board(streams=False, sram_bytes=n)) for n in (1, 4096)]
    small, large = (sum(1 for _ in plan.tracks[0].steps) for plan in plans)
    assert large < small == 12


@pytest.mark.parametrize("kind", ["residual", "depthwise-separable"])
def test_each_pixel_once_and_no_weave_is_better(kind: str) -> None:
    for number in range(20):
        chain, _ = in_place.drawn(kind, number)
        flow, span = flow_of(chain)
        for tiny in Tiny.of(flow, span):
            (item,) = tiny.within(tiny.peak)
            assert len(set(map(tuple, item.order.tolist()))) == len(item.order) == item.units
            if not item.by_byte:  # counted by pixels, of which halves of bytes may be left
                assert tiny.peak <= min(way.peak for way in Weave.pixel_by_pixel(flow, span))


def test_what_nothing_needs_is_not_made() -> None:
    """A 1 x 1 convolution of stride 2 reads one pixel of three."""
    chain = (
        Chain((1, 3, 2), "uint8").conv("d", 3, 1, "uint8").conv("y", 4, 1, "uint8", stride=(2, 3))
    )
    ((item,),) = (tiny.within(tiny.peak) for tiny in Tiny.of(*flow_of(chain)))
    assert item.order[:, 0].tolist() == [0, 1]


def test_larger_blocks_are_woven() -> None:
    for side, few in ((MOST, False), (MOST // 2, True)):
        chain = Chain((1, side, 2), "uint8").conv("d", 3, 1, "uint8").conv("y", 4, 1, "uint8")
        assert bool(list(Tiny.of(*flow_of(chain)))) == few


# --- free nibbles: elements go into as few runs as there can be

ARENAS = st.lists(st.booleans(), max_size=40)


def runs(free: list[bool], width: int) -> list[tuple[int, int]]:
    """(places for elements, the first one) of each run, the shortest first."""
    usable = [all(free[n : n + width]) for n in range(0, len(free) - width + 1, width)]
    found, begin = [], None
    for n, each in enumerate([*usable, False]):
        if each and begin is None:
            begin = n
        elif not each and begin is not None:
            found.append((n - begin, begin))
            begin = None
    return sorted(found)


def best(free: list[bool], count: int, width: int) -> list[int] | None:
    """The shortest run that holds what is left, or else the longest whole; None if too few."""
    left, chosen = runs(free, width), list[int]()
    while len(chosen) < count and left:
        wanted = count - len(chosen)
        length, first = left.pop(next((n for n, r in enumerate(left) if r[0] >= wanted), -1))
        chosen += range(first, first + min(length, wanted))
    return sorted(n * width for n in chosen) if len(chosen) == count else None


@given(ARENAS, st.integers(1, 9), st.sampled_from([1, 2, 3, 4, 8]))
def test_pieces_are_as_few_as_can_be(free: list[bool], count: int, width: int) -> None:
    arena = Cells(len(free))
    arena.free[:] = free
    expected = best(free, count, width)
    if expected is None:
        with pytest.raises(Full):
            arena.pieces(count, width)
        return
    assert arena.pieces(count, width).tolist() == expected
    taken = np.zeros(len(free), bool)
    for nibble in range(width):
        taken[np.array(expected) + nibble] = True
    assert (arena.free == (np.array(free, bool) & ~taken)).all()
