"""The small network whose generated C is kept as golden files."""

from __future__ import annotations

import numpy as np

from pipeline.graph.graph import Graph
from tests.graphs import Net


def network() -> Graph:
    """A residual block, depthwise and pointwise convolution, pooling, a classifier."""
    net = Net((8, 8, 3), np.random.default_rng(1), name="small")
    start = net.conv(4, stride=(2, 2))
    net.plus(net.conv(4), start)
    net.depthwise()
    net.conv(6, (1, 1))
    net.mean((4, 4))
    net.dense(3)
    net.softmax()
    return net.graph()
