"""Small int8 networks with loops to be found: aggregating and channel-wise operators on few pixels,
one branch or several, all drawn at random."""

from __future__ import annotations

import numpy as np

from pipeline.graph.graph import Graph
from tests.strategies.nets import Net

KINDS = (*["conv"] * 3, *["depthwise"] * 2, "pool", "lookup", "add", "multiply", "gate")


def random_network(seed: int, most: int = 6) -> Graph:
    """Up to ``most`` operators; drawn again while there are more."""
    rng = np.random.default_rng(seed)
    while len((graph := _drawn(rng, seed)).operators) > most:
        pass
    return graph


def _drawn(rng: np.random.Generator, seed: int) -> Graph:
    side = int(rng.integers(1, 4))
    net = Net((side, side, int(rng.integers(1, 5))), seed)
    names = ["input"]
    channels = rng.choice([2, 4, 6, 12, 24], 3)

    def like(x: str) -> list[str]:
        return [n for n in names if net.tensors[n].shape == net.tensors[x].shape]

    wanted = int(rng.integers(2, 7))
    while len(net.operators) < wanted:
        x = names[int(rng.integers(max(0, len(names) - 3), len(names)))]
        kind = rng.choice(KINDS)
        match kind:
            case "conv":
                made = net.conv(x, int(rng.choice(channels)), int(rng.choice([1, 3])))
            case "depthwise":
                made = net.depthwise(x, 3, int(rng.choice([1, 1, 2])))
            case "pool":
                made = net.average(x)
            case "lookup":
                made = net.lookup(x)
            case "gate":
                made = net.multiply(x, net.average(x))
            case _:
                other = str(rng.choice(like(x)))
                made = net.add(x, other) if kind == "add" else net.multiply(x, other)
        names.append(made)
    read = {name for op in net.operators for name in op.inputs}
    ends = [op.output for op in net.operators if op.output not in read]
    for n, end in enumerate(ends[1:], 1):
        shapes = [net.tensors[name].shape for name in (ends[n - 1], end)]
        same = shapes[0] == shapes[1]
        if not same:
            flat = [net.dense(name, 2) for name in (ends[n - 1], end)]
        ends[n] = net.add(*((ends[n - 1], end) if same else flat))
    return net.graph(ends[-1])
