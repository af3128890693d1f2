"""Networks with branches: proved, interpreted, and in the memory that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.rates import Rates, Transfers
from tests.strategies.nets import Net
from tests.strategies.swap.nets import best_plan, checked
from tests.tiers import quick


def residual(seed: int = 0) -> Graph:
    """Blocks of ResNet: shortcuts as they are, and by a convolution at stride 2."""
    net = Net((11, 9, 3), seed)
    x = net.maximum(net.conv("input", 6, 3))
    x = net.lookup(net.add(net.conv(net.conv(x, 6, 3), 6, 3), x))
    y = net.conv(net.conv(x, 12, 3, 2), 12, 3)
    x = net.lookup(net.add(y, net.conv(x, 12, 1, 2)))
    net.dense(net.average(x), 5)
    return net.graph()


def inception(seed: int = 0) -> Graph:
    """Four branches that meet in a concatenation, then two; what pools keeps the size."""
    net, x = Net((10, 8, 4), seed), "input"
    one, three = net.lookup(net.conv(x, 3)), net.conv(net.conv(x, 4), 5, 3)
    five = net.conv(net.conv(x, 2), 3, 5)
    x = net.concat(one, three, five, net.conv(net.maximum(x, 1, 1), 2))
    x = net.concat(net.conv(x, 5), net.conv(x, 4, 3))
    net.softmax(net.dense(net.average(x), 7))
    return net.graph()


def squeezed(seed: int = 0) -> Graph:
    """A gate of one pixel for all of an image, and a tensor that is read much later."""
    net = Net((9, 9, 4), seed)
    x = net.inverted("input", 4, 2, 3, 1, squeeze=2)
    y = net.conv(net.conv(x, 6, 3, 2), 8, 3, dilation=2)
    late = net.average(x)
    net.add(net.dense(y, 5), net.dense(late, 5))
    return net.graph()


NETWORKS: tuple[Callable[[int], Graph], ...] = (residual, inception, squeezed)


def random_network(seed: int) -> Graph:
    """Every layer reads any of the layers before, of its size where it has to be."""
    rng, net = np.random.default_rng(seed), Net((int(8 + seed % 5), 7, 3), seed)
    known = ["input"]
    for _ in range(rng.integers(4, 10)):
        x = known[int(rng.integers(max(0, len(known) - 3), len(known)))]
        rows, columns, depth = net.tensors[x].shape
        alike = [name for name in known if net.tensors[name].shape[:2] == (rows, columns)]
        same = [name for name in alike if net.tensors[name].shape == (rows, columns, depth)]
        other, equal = (str(rng.choice(names)) for names in (alike, same))
        kind = int(rng.integers(8))
        if kind == 0:
            known.append(net.add(x, equal))
        elif kind == 1 and other != x:
            known.append(net.concat(x, other))
        elif kind == 2 and min(rows, columns) > 3:
            known.append(net.maximum(x, int(rng.integers(2, 4)), int(rng.integers(1, 3))))
        elif kind == 3:
            known.append(net.depthwise(x, 3, int(rng.integers(1, 3))))
        elif kind == 4:
            known.append(net.lookup(x))
        elif kind == 5:
            known.append(net.multiply(x, net.lookup(net.conv(net.average(x), depth))))
        else:
            kernel, stride = int(rng.choice([1, 3, 5])), int(rng.integers(1, 3))
            known.append(net.conv(x, int(rng.integers(1, 12)), kernel, stride))
    # what was left unread meets at the end
    read = {name for op in net.operators for name in op.inputs}
    ends = [name for name in known if name not in read]
    last = net.dense(ends[0], 6)
    for end in ends[1:]:
        last = net.add(last, net.dense(end, 6))
    return net.graph()


def is_right(graph: Graph, sram_bytes: int, frames: int = 1, work_us: float = 0.1) -> bool:
    """Whether it fits; what is planned is right in any case."""
    rates = Rates(work_us, Transfers(0.2, 3.0), Transfers(0.3, 5.0))
    plan = best_plan(graph, sram_bytes, frames, rates)
    fits = roomy(plan).memories == plan.memories
    plan, notes = roomy(plan), dict(plan.notes)
    assert float(notes["makespan_us"]) >= float(notes["bound_us"]) > 0
    assert checked(plan, graph) <= plan.memory["sram"].bytes
    return fits


SHARES = ((residual, 4), (inception, 4), (squeezed, 4), (residual, 1))


@pytest.mark.parametrize(
    ("network", "share"), quick(1, [*SHARES, *product((inception, squeezed), (2, 1))], ci=3)
)
def test_branches_are_right(network: Callable[[int], Graph], share: int) -> None:
    graph = network(0)
    is_right(graph, sum(t.size for t in graph.tensors.values()) // share)


@pytest.mark.parametrize("network", quick(0, NETWORKS, ci=1))
def test_several_frames_are_right(network: Callable[[int], Graph]) -> None:
    graph = network(1)
    assert is_right(graph, 2 * sum(t.size for t in graph.tensors.values()), frames=3)


@pytest.mark.parametrize("seed", quick(2, range(60), ci=6))
def test_random_networks_are_right(seed: int) -> None:
    graph = random_network(seed)
    size = sum(tensor.size for tensor in graph.tensors.values())
    is_right(graph, size // (1 + seed % 4), work_us=(0.01, 1.0)[seed % 2])
