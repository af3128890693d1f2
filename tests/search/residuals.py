"""``python -m tests.search.residuals``: what residual blocks take beside their input, or their sum
where that is larger, in pixels of the sum; planned with each strategy in place.

A block is two 3 x 3 convolutions, of stride 1, whose sum is with the input; or as at the start of a
ResNet's stage: the first one has a stride or makes more channels, and the sum is with a 1 x 1
convolution of the input. With a sum w wide the paper's appendix C.4 says 3w + 2 pixels, here it is
2w + 4 at most. Exits with 1 where one takes more, or more than whole tensors do.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import NamedTuple

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from tests.graphs import Net
from tests.strategies.chains import board
from tests.strategies.peaks import arena_nibbles

STRATEGIES = (Replace(), SingleTranspose(), Herringbone())
SIDES = ((8, 8), (14, 14), (28, 28), (56, 56), (7, 40), (40, 7), (49, 10))
CHANNELS = (3, 16, 64)


class Block(NamedTuple):
    """``wider``: so many times the input's channels are made; ``stride``: of the first convolution
    and of the shortcut."""

    height: int
    width: int
    channels: int
    stride: tuple[int, int] = (1, 1)
    wider: int = 1

    def graph(self) -> Graph:
        height, width, channels, stride, wider = self
        net = Net((height, width, channels), np.random.default_rng(height + width))
        image, made = net.image, channels * wider
        net.conv(made, stride=stride, padding=(1, 1, 1, 1))
        last = net.conv(made)
        if stride != (1, 1) or wider > 1:
            image = net.conv(made, (1, 1), image, stride=stride, padding=(0, 0, 0, 0))
        net.plus(image, last)
        return net.graph()


def blocks() -> list[Block]:
    plain = [Block(*size, channels) for size, channels in product(SIDES, CHANNELS)]
    strides = (((2, 2), 2), ((2, 2), 1), ((2, 1), 2), ((1, 2), 2), ((1, 1), 2))
    first = [Block(*size, 8, *rest) for size, rest in product(SIDES, strides)]
    return [*plain, *first]


class Beside(NamedTuple):
    """Pixels of the sum, beside the larger of input and sum: with each strategy, of whole tensors,
    and how many it may be. The plans are proved."""

    found: tuple[float, ...]
    whole: float
    most: int

    @property
    def right(self) -> bool:
        return max(self.found) <= min(self.most, self.whole)


def beside(block: Block) -> Beside:
    graph, tight = block.graph(), board(streams=False, sram_bytes=1)
    plans = [strategy.plan(graph, tight) for strategy in (*STRATEGIES, Ordinary())]
    for plan in plans:
        verify(roomy(plan), graph)
    given, made = (graph.tensors[name] for name in (graph.input, graph.output))
    larger, (_, width, channels) = max(given.size, made.size), made.shape
    *found, whole = ((arena_nibbles(plan) / 2 - larger) / channels for plan in plans)
    return Beside(tuple(found), whole, 2 * width + 4)


def main() -> int:
    wrong, names = 0, [strategy.name for strategy in STRATEGIES]
    print(f"{'block':38}" + "".join(f"{n:>18}" for n in (*names, "whole", "2w + 4")))
    for block in blocks():
        pixels = beside(block)
        wrong += not pixels.right
        said = f"{block.height} x {block.width} x {block.channels}, stride {block.stride}"
        said += f", {block.wider} times as deep" if block.wider > 1 else ""
        numbers = (*pixels.found, pixels.whole, pixels.most)
        print(f"{said:38}" + "".join(f"{n:18.1f}" for n in numbers), flush=True)
    print(f"above: {wrong} of {len(blocks())}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
