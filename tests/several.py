"""Small random networks of several inputs and outputs."""

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.passes._edit import edited
from tests.graphs import BLOCKS, Net


def several(seed: int, inputs: int = 2) -> Graph:
    """A random network of two inputs, or one, and one to three outputs, wherever they are made."""
    net = Net((int(np.random.default_rng(seed).integers(4, 13)), 6, 4), np.random.default_rng(seed))
    net.name, rng = f"several{seed}", net.rng
    names = [net.image, *(net.tensor(f"image{n}", net.shape) for n in range(1, inputs))]
    for n, name in enumerate(names):
        made, net.last = net.last, name
        for _ in range(int(rng.integers(not n, 3))):
            BLOCKS[int(rng.integers(len(BLOCKS)))](net)
        if n:
            net.conv(net.tensors[made].shape[2], (1, 1))
            if net.here == net.tensors[made].shape and rng.random() < 0.5:
                net.plus(made, net.last)
            else:  # an output of its own, if not of both
                net.dense(int(rng.integers(1, 9)))
    made = [op.output for op in net.operators if op.output != net.last]
    some = rng.choice(made, min(len(made), int(rng.integers(0, 3))), replace=False).tolist()
    outputs = tuple(rng.permutation([*some, net.last]).tolist())
    operators = tuple(net.operators)
    whole = Graph(net.name, net.tensors, operators, net.constants, tuple(names), outputs)
    return edited(whole, operators)
