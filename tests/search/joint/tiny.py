"""Networks so small that all orders of their rows can be looked at."""

import numpy as np

from pipeline.graph.graph import Graph
from tests.strategies.nets import Net


def tiny(seed: int) -> Graph:
    """One to three blocks on an image of at most 8 x 6 x 4, with a classifier sometimes."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(4, 9)), int(rng.choice([4, 6])), int(rng.integers(1, 5))
    net, last = Net(shape, weights=False), "input"
    for _ in range(int(rng.integers(1, 4))):
        last = _BLOCKS[int(rng.integers(len(_BLOCKS)))](net, last, rng)
    if rng.random() < 0.3:
        last = net.average(last)
    if rng.random() < 0.4:
        last = net.dense(last, int(rng.integers(2, 6)))
    return net.graph(last)


def _chain(net: Net, x: str, rng: np.random.Generator) -> str:
    kernel, stride = int(rng.choice([1, 2, 3])), int(rng.integers(1, 3))
    return net.conv(x, int(rng.choice([1, 2, 4, 6])), kernel, stride)


def _separable(net: Net, x: str, rng: np.random.Generator) -> str:
    return net.separable(x, int(rng.choice([2, 4, 6])), int(rng.integers(1, 3)))


def _residual(net: Net, x: str, rng: np.random.Generator) -> str:
    y = net.conv(x, int(rng.choice([2, 4, 6])), 3)
    return net.add(net.conv(y, net.tensors[x].shape[2], int(rng.choice([1, 3]))), x)


def _inverted(net: Net, x: str, rng: np.random.Generator) -> str:
    return net.inverted(x, net.tensors[x].shape[2], int(rng.choice([2, 3])), 3, 1)


def _excited(net: Net, x: str, rng: np.random.Generator) -> str:
    gate = net.conv(net.average(x), net.tensors[x].shape[2])
    return net.multiply(x, gate)


def _branches(net: Net, x: str, rng: np.random.Generator) -> str:
    stride = int(rng.integers(1, 3))
    y = net.conv(x, int(rng.integers(1, 4)), 3, stride)
    return net.concat(y, net.conv(x, int(rng.integers(1, 4)), 1, stride))


def _pooled(net: Net, x: str, rng: np.random.Generator) -> str:
    height, width, _ = net.tensors[x].shape
    if min(height, width) < 3:
        return net.lookup(x)
    return net.maximum(x, int(rng.integers(2, 4)), int(rng.integers(1, 3)))


_BLOCKS = _chain, _separable, _residual, _inverted, _excited, _branches, _pooled
