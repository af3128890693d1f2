"""Peaks of residual blocks beside their input, or their sum where that is larger, in pixels of the
sum; planned with each strategy in place.

A block is two 3 x 3 convolutions, of stride 1, whose sum is with the input; or as at the start of a
ResNet's stage: the first one has a stride or makes more channels, and the sum is with a 1 x 1
convolution of the input. With a sum w wide the paper's appendix C.4 says 3w + 2 pixels, here it is
2w + 4 at most, and no more than whole tensors take.
"""

from itertools import product

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.strategies.base import Strategy
from pipeline.strategies.ordinary import Ordinary
from tests.graphs import Net
from tests.strategies.chains import IN_PLACE, board
from tests.strategies.peaks import arena_nibbles
from tests.tiers import quick

SIDES = ((8, 8), (14, 14), (28, 28), (56, 56), (7, 40), (40, 7), (49, 10))
BEGINNINGS = (((2, 2), 2), ((2, 2), 1), ((2, 1), 2), ((1, 2), 2), ((1, 1), 2))
BLOCKS = [
    *((*size, channels, (1, 1), 1) for size, channels in product(SIDES, (3, 16, 64))),
    *((*size, 8, *rest) for size, rest in product(SIDES, BEGINNINGS)),
]
"""Height, width, channels, both strides, and how many times the input's channels are made."""
FIRST = [(8, 8, 3, (1, 1), 1), (14, 14, 8, (2, 2), 2)]
MORE = [(14, 14, 3, (1, 1), 1), (14, 14, 8, (1, 2), 2), (7, 40, 8, (1, 1), 2)]
"""The smallest of each kind; of the others 56 x 56 pixels take a minute of processor time."""


def block(height: int, width: int, channels: int, stride: tuple[int, int], wider: int) -> Graph:
    net = Net((height, width, channels), np.random.default_rng(height + width))
    image, made = net.image, channels * wider
    net.conv(made, stride=stride, padding=(1, 1, 1, 1))
    last = net.conv(made)
    if stride != (1, 1) or wider > 1:
        image = net.conv(made, (1, 1), image, stride=stride, padding=(0, 0, 0, 0))
    net.plus(image, last)
    return net.graph()


def beside(strategy: Strategy, graph: Graph) -> float:
    """Pixels of the sum, beside the larger of input and sum."""
    plan = strategy.plan(graph, board(streams=False, sram_bytes=1))
    verify(roomy(plan), graph)
    sizes = [graph.tensors[name].size for name in (graph.input, graph.output)]
    return (arena_nibbles(plan) / 2 - max(sizes)) / graph.tensors[graph.output].shape[2]


@pytest.mark.parametrize(
    ("height", "width", "channels", "stride", "wider"),
    quick(FIRST, sorted(BLOCKS, key=lambda each: each not in MORE), ci=len(MORE)),
)
def test_pixels_beside_a_block(
    height: int, width: int, channels: int, stride: tuple[int, int], wider: int
) -> None:
    graph = block(height, width, channels, stride, wider)
    whole = beside(Ordinary(), graph)
    if (channels, stride, wider) == (3, (1, 1), 1):
        assert whole == height * width * 2  # the input, the first convolution and the second one
    most = min(2 * graph.tensors[graph.output].shape[1] + 4, whole)
    for strategy in IN_PLACE:
        assert beside(strategy(), graph) <= most, strategy.name
