"""Single layers for Winograd's minimal filtering, at random and at the ends of what it takes."""

from __future__ import annotations

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from tests.codegen.cortex_m.layers import clipped_at_zero, requantized
from tests.graphs import Net


def layer(rng: np.random.Generator) -> Graph:
    """Of any size from 2 x 2 outputs on, channels that four and two do not divide, any padding."""
    height, width = (int(n) for n in rng.integers(2, 15, 2))
    depth, channels = int(rng.integers(1, 21)), int(rng.integers(2, 8))
    padding = (1, 1, 1, 1)
    if rng.random() < 0.4 and min(height, width) > 3:
        padding = tuple(int(n) for n in rng.integers(0, 2, 4))  # type: ignore[assignment]
    net = Net((height, width, depth), rng, "uint8" if rng.random() < 0.25 else "int8", "layer")
    net.conv(channels, (3, 3), padding=padding, requant=requantized(rng, channels, 9 * depth))
    clipped_at_zero(net)
    return net.graph()


ENDS = ((127, 78), (-128, 78), (0, 226))
"""Weights that are all alike, or, 0, the ends in turns along all axes; and the greatest multiple of
two channels with which these are in the range of F(4 x 4, 3 x 3)."""


def extreme(weight: int, depth: int, kind: str = "int8") -> Graph:
    """Of weights at an end of what bytes hold, see ``ENDS``."""
    net = Net((6, 8, depth), np.random.default_rng(depth), kind, "layer")
    net.conv(2, (3, 3))
    op = net.operators[-1]
    assert isinstance(op, Conv2d)
    weights = net.constants[op.parameters[0]]
    turns = np.where(np.indices(weights.shape).sum(0) % 2, 127, -128)
    weights[:] = weight or turns
    return net.graph()


def inputs(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """At random, and as low and as high as an input can be, all of it or pixel by pixel."""
    tensor = graph.tensors[graph.input]
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    ends = rng.choice([low, high], tensor.shape)
    some = rng.integers(low, high + 1, tensor.shape)
    return np.stack([some, ends, np.full(tensor.shape, low), np.full(tensor.shape, high)])
