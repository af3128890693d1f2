"""A tiny block of several operators is planned in the best of all orders of its pixels."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.tiny import MOST, Tiny
from pipeline.search.chains.weaves import Weave
from pipeline.strategies.herringbone import Herringbone
from tests.graphs import Net
from tests.search import in_place
from tests.strategies.chains import Chain, board
from tests.strategies.peaks import arena_nibbles
from tests.strategies.proving import exact

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
