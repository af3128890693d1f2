"""Networks with branches in place: layer by layer where that is small enough, else blocks pixel by
pixel, in at most 2w + 4 pixels beside a residual block's input."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import core, twin
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.graphs import Net, random_graph
from tests.search.every_order import Unit, least
from tests.strategies.chains import IN_PLACE, board
from tests.strategies.peaks import pmu_nibbles
from tests.tiers import quick


def residual(height: int, width: int, channels: int) -> Graph:
    net = Net((height, width, channels), np.random.default_rng(height + width))
    image = net.image
    net.conv(channels)
    net.plus(image, net.conv(channels))
    return net.graph()


def mobile(side: int = 6) -> Graph:
    """As in MobileNetV2: with a branch, without one and half as large, with one."""
    net = Net((side, side, 8), np.random.default_rng(side))
    for channels, stride in ((8, 1), (12, 2), (12, 1)):
        block = net.last
        net.conv(3 * net.tensors[block].shape[2], (1, 1))
        net.depthwise((3, 3), stride=(stride, stride))
        net.conv(channels, (1, 1))
        if stride == 1:
            net.plus(block, net.last)
    net.mean((side // 2, side // 2))
    net.dense(5)
    net.softmax()
    return net.graph()


def right(plan: Plan, graph: Graph) -> None:
    assert verify(plan, graph).recomputed == {}
    frame = frames(graph, 3)[2:]
    equal(interpret(plan, graph, frame[0]).output, graph.outputs(frame)[0])


def steps(plan: Plan) -> Counter[str]:
    return Counter(step.op for step in plan.tracks[0].steps if isinstance(step, Compute))


@pytest.mark.parametrize(
    ("height", "width", "channels"), quick(1, [(5, 4, 2), (6, 6, 3), (4, 9, 2), (9, 5, 8)], ci=0)
)
def test_a_residual_block_takes_2w_and_4_pixels_beside_its_input(
    height: int, width: int, channels: int
) -> None:
    graph = residual(height, width, channels)
    for strategy in IN_PLACE:
        plan = strategy().plan(graph, board(streams=False))
        most = height * width + 2 * width + 4
        assert pmu_nibbles(plan) <= 2 * channels * most, strategy
        assert max(steps(plan).values()) > 1
        right(plan, graph)


def test_pixels_that_are_made_and_not_read_take_no_place_of_others() -> None:
    """A 1 x 1 convolution of stride 2 reads one of four of the sum."""
    net = Net((8, 16, 3), np.random.default_rng(0))
    block = net.conv(6)
    net.conv(6)
    net.plus(block, net.conv(6))
    large = net.conv(9, (1, 1), stride=(2, 2), padding=(0, 0, 0, 0))
    net.plus(large, net.conv(9, (1, 1), block, stride=(2, 2), padding=(0, 0, 0, 0)))
    graph = net.graph()
    plan = Herringbone().plan(graph, board(streams=False))
    assert max(steps(plan).values()) > 1
    right(plan, graph)


def test_layer_by_layer_where_another_layer_needs_more() -> None:
    """The first layer's output alone is larger than the block that follows."""
    net = Net((6, 6, 2), np.random.default_rng(0))
    net.conv(24, (1, 1))
    block = net.conv(4, (1, 1))
    net.conv(4)
    net.plus(block, net.conv(4))
    graph = net.graph()
    plan = Herringbone().plan(graph, board(streams=False))
    assert set(steps(plan).values()) == {1} and pmu_nibbles(plan) == 2 * 36 * 24
    right(plan, graph)


def test_no_order_of_a_tiny_block_is_much_better() -> None:
    """2 × 3 pixels: all of y1, of y2 and of the sum, in all orders."""
    plan, places = Herringbone().plan(residual(2, 3, 1), board(streams=False)), range(6)
    near = {
        p: [q for q in places if abs(p // 3 - q // 3) <= 1 and abs(p % 3 - q % 3) <= 1]
        for p in places
    }

    def cells(name: str, some: list[int]) -> frozenset[tuple[str, int, int, int]]:
        return frozenset((name, p, 0, 0) for p in some)

    units = [
        *(Unit(cells("x", near[p]), ("y1", p, 0, 0), 2) for p in places),
        *(Unit(cells("y1", near[p]) | cells("x", [p]), ("sum", p, 0, 0), 2) for p in places),
    ]
    best = least(units, dict.fromkeys(cells("x", list(places)), 2))
    assert best <= pmu_nibbles(plan) <= best + 4


@pytest.mark.ci
def test_inverted_blocks_never_hold_what_they_expand(tmp_path: Path) -> None:
    graph = mobile()
    for strategy in IN_PLACE:
        plan = strategy().plan(graph, board(streams=False))
        assert pmu_nibbles(plan) / 2 < 6 * 6 * 24 < pmu_nibbles(Ordinary().plan(graph, board())) / 2
        right(plan, graph)
    plan, given = Herringbone().plan(graph, core()), frames(graph, 2)
    equal(twin(tmp_path, graph, plan)(given), graph.outputs(given))
    kernels = Counter(s.kernel for s in plan.tracks[0].steps if isinstance(s, Compute))
    assert kernels["cortex_m.gathered_conv2d"] > 8 < kernels["cortex_m.gathered_depthwise"]


@pytest.mark.parametrize("seed", quick(0, range(40), ci=2))
def test_random_networks(seed: int, tmp_path: Path) -> None:
    """Squeeze-excitation, concatenation, padding, tables and whatever else there is."""
    graph = random_graph(seed)
    plan = Herringbone().plan(graph, core())
    right(plan, graph)
    given = frames(graph, 2)
    equal(twin(tmp_path, graph, plan)(given), graph.outputs(given))
