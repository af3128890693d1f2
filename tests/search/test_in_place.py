"""The order of a layer in place is the best where one thing is asked of it, and a tiny block's."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.search.chains.cells import Cells, Full, at
from pipeline.search.chains.peeling import least, turned_after
from pipeline.search.chains.slots import _room
from pipeline.search.chains.traversals import ordered, ranks, rows, single_transpose
from pipeline.search.chains.weaves import TINY, by_rows, tiny, woven
from pipeline.search.view.pixels import Layer, PixelView
from pipeline.search.view.whole import Span
from pipeline.strategies.in_place import Herringbone
from tests.graphs import Net
from tests.search import in_place
from tests.search.in_place import KINDS
from tests.strategies.chains import Chain, board
from tests.strategies.peaks import arena_nibbles, peak_nibbles
from tests.strategies.proving import exact
from tests.tiers import quick

PIXELS = [
    *("square", "non-square kernels", "unequal strides", "same padding"),
    *("same padding, strides", "dilation", "1x1", "anything"),
]


def layer_of(chain: Chain) -> Layer:
    return Layer(chain.operators[0], chain.tensors)


def test_parts_that_share_nothing_one_after_the_other() -> None:
    """Every second row and column: four images in one, of which one after the other is shorter."""
    chain = Chain((6, 6, 2)).conv("y", 3, 3, dilation=(2, 2))
    layer = layer_of(chain)
    order = np.argsort(ranks(*layer.outputs[:2], least(layer)), axis=None)
    parts = [(int(n) // 2 % 2, int(n) % 2) for n in order]
    assert parts == sorted(parts, key=parts.index) and len(set(parts)) == 4


@pytest.mark.parametrize("kind", PIXELS)
def test_where_rows_turn_into_columns_takes_what_is_counted(kind: str) -> None:
    for number in range(10):
        layer = layer_of(next(in_place.several(kind, number)))
        height, width = layer.outputs[:2]
        counted = [
            peak_nibbles(layer, single_transpose(height, width, switch))
            for switch in range(max(height, width) + 1)
        ]
        assert turned_after(layer).tolist() == counted


@pytest.mark.parametrize("kind", quick(4, [*PIXELS, "depthwise", "pooling"]))
def test_large_layers_row_by_row_are_known_without_their_pixels(kind: str) -> None:
    for number in range(10):
        chain = next(in_place.several(kind, number))
        view, _ = view_of(chain)
        layer = view.layer(0)
        by_rows = ordered(view, 0, rows(*layer.outputs[:2]))
        by_pixels = replace(by_rows, row_major=False)
        assert by_rows.row_major and by_rows.peak == by_pixels.peak
        last, each = by_pixels.last["image"].reshape(-1, 1), layer.outputs.each
        for cells in range(by_rows.peak, layer.inputs.total + layer.outputs.total):
            arena = Cells(cells + 3)
            arena.hold(image := at(layer.source, cells % 3))
            if cells % 2:
                arena.free[-1] = False
            highest = np.where(arena.free, arena.size, -1)
            inside = image.cells(image.box).reshape(layer.inputs.number, -1)
            highest[inside] = inside - last * each
            step, total = max(2, layer.outputs.nibbles_per_element), layer.outputs.total
            able = [
                base
                for base in range(0, arena.size - total + 1, step)
                if (highest[base : base + total] >= base).all()
            ]
            assert _room(arena, by_rows, layer, image) == next(iter(able), None), number
            assert not arena.free[inside].any()


def test_a_large_image_takes_little_more_than_a_byte_a_cell() -> None:
    net = Net((4096, 4096, 1))
    net.maximum((2, 2), stride=(2, 2))
    tracemalloc.start()
    try:
        plan = Herringbone().plan(net.graph(), board(streams=False))
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()
    assert arena_nibbles(plan) == 2 << 24


def test_each_line_of_a_block_is_made_in_the_largest_steps_that_fit() -> None:
    """12 x 12 pixels: rows beyond the first few free more than they make."""
    chain = Chain((12, 12, 8), "int8")
    chain.conv("d", 8, 3, "int8", 8, padding=(1, 1, 1, 1)).conv("y", 4, 1, "int8")
    view, span = view_of(chain)
    by_row, *_, by_pairs = by_rows(view, span, 2)
    (rows_only,), (mixed,) = by_row.within(by_row.peak), by_pairs.within(by_pairs.peak)
    alone = woven(view, span, 2)
    assert mixed.peak == alone.peak < rows_only.peak
    assert len(rows_only.starts) < len(mixed.starts) < len(alone.starts)
    assert sorted(map(tuple, mixed.units)) == sorted(map(tuple, alone.units))
    assert by_pairs.within(rows_only.peak) == (rows_only,)


@pytest.mark.parametrize("kind", quick(2, KINDS, ci=0))
def test_arenas_are_the_least_of_all_orders(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 and 8 bits and from one to the other, planned with ``herringbone``; never above rows."""
    cases = "3" if kind in PIXELS[:2] else "100"
    monkeypatch.setattr("sys.argv", ["in_place", kind, "--cases", cases])
    with pytest.raises(SystemExit) as end:
        in_place.main()
    assert end.value.code == 0


# --- tiny blocks of several operators: the best of all orders of their pixels

BLOCK = (2, 2, 6)
"""Shape whose input's first pixel dies with the first convolution's last, if sums begin before."""


def block() -> Graph:
    net = Net(BLOCK, np.random.default_rng(0))
    image = net.image
    net.conv(3)
    net.plus(image, net.conv(6, (1, 1)))
    return net.graph()


def view_of(chain: Chain) -> tuple[PixelView, Span]:
    view = PixelView.of(chain.tensors, ("image",), chain.operators, "y")
    return view, Span(0, len(chain.operators))


def test_an_order_that_no_weave_has() -> None:
    graph = block()
    view = PixelView.of(graph.tensors, graph.inputs, graph.operators, graph.output)
    (found,) = tiny(view, Span(0, 3))
    assert (found.peak, woven(view, Span(0, 3), 1).peak) == (72, 84)
    plan = Herringbone().plan(graph, board(streams=False, sram_bytes=1))
    assert arena_nibbles(plan) == 72
    assert exact(roomy(plan), graph).report.recomputed == {}


def test_where_there_is_room_steps_are_larger() -> None:
    plans = [Herringbone().plan(block(), board(streams=False, sram_bytes=n)) for n in (1, 4096)]
    small, large = (sum(1 for _ in plan.tracks[0].steps) for plan in plans)
    assert large < small == 12


def test_what_nothing_needs_is_not_made() -> None:
    """A 1 x 1 convolution of stride 2 reads one pixel of three."""
    chain = (
        Chain((1, 3, 2), "uint8").conv("d", 3, 1, "uint8").conv("y", 4, 1, "uint8", stride=(2, 3))
    )
    ((order,),) = (found.within(found.peak) for found in tiny(*view_of(chain)))
    assert order.units[:, 0].tolist() == [0, 1]


def test_larger_blocks_are_woven() -> None:
    for side, few in ((TINY, False), (TINY // 2, True)):
        chain = Chain((1, side, 2), "uint8").conv("d", 3, 1, "uint8").conv("y", 4, 1, "uint8")
        assert bool(list(tiny(*view_of(chain)))) == few


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


@given(ARENAS, st.integers(1, 9), st.sampled_from([1, 2, 4, 8]))
def test_pieces_are_as_few_as_can_be(free: list[bool], count: int, width: int) -> None:
    arena = Cells(len(free))
    arena.free[:] = free
    expected = best(free, count, width)
    if expected is None:
        with pytest.raises(Full):
            arena.pieces(count, width)
        return
    assert arena.pieces(count, width)[::width].tolist() == expected
    taken = np.zeros(len(free), bool)
    for nibble in range(width):
        taken[np.array(expected) + nibble] = True
    assert (arena.free == (np.array(free, bool) & ~taken)).all()
