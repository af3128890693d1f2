"""Where an inference whose feature map is lost could go on."""

from __future__ import annotations

import numpy as np

from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from tests.graphs import Net
from tests.strategies.swap.bench_repair import Repair, goes_on
from tests.strategies.swap.nets import board, random_chain

BUFFER_BYTES = 4096


def test_after_layers_all_of_which_is_on_the_card() -> None:
    """A residual block: its input is read until the sum."""
    net = Net((6, 6, 3), np.random.default_rng(0))
    image = net.image
    first, second = net.conv(3), net.conv(3)
    net.plus(image, second)
    graph = net.graph()
    assert goes_on(graph, set()) == []
    assert goes_on(graph, {image}) == [0]
    assert goes_on(graph, {image, first}) == [0, 1]
    assert goes_on(graph, {image, second}) == [0, 2]
    assert goes_on(graph, {first, second}) == []


def test_nothing_is_saved_where_nothing_is_stored_and_less_than_all_elsewhere() -> None:
    graph, hardware, found = random_chain(1), board(1 << 18), list[Repair]()
    for strategy in (Swap(), Swap(scheduler="swapnn", buffer_bytes=BUFFER_BYTES)):
        plan = strategy.plan(graph, hardware)
        found.append(Repair.of(plan, graph, simulate(plan, graph, hardware)))
    roomy, tiled = found
    assert roomy.maps == {} and roomy.again == [0] and roomy.saved_us == 0
    assert len(tiled.maps) == len(tiled.again) - 1 > 1
    assert 0 < tiled.saved_us < tiled.makespan_us
