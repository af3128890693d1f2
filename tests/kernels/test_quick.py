"""The reach of a channel's sums, against products one by one, and how they end."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Clip
from pipeline.graph.requant import Requant
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.kernels.cortex_m import quick
from pipeline.kernels.cortex_m.quick import channel_sums
from tests.comparing import equal
from tests.contracts.operators import MAKERS, Conv2d, Dense
from tests.graphs import Net


@pytest.mark.parametrize("kind", [Conv2d, Dense])
def test_sums_of_the_least_and_the_largest_products(kind: type[Conv2d | Dense]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        op, tensors, values = MAKERS[kind](rng)
        assert isinstance(op, Conv2d | Dense)
        source, (weight, *_) = tensors[op.inputs[0]], op.parameters
        constants = {name: values[name] for name in op.parameters}
        found = channel_sums(op, Graph("net", tensors, (op,), constants, source.name, op.output))
        ends = [n - source.zero_point for n in (source.dtype.minimum, source.dtype.maximum)]
        for channel, row in enumerate(constants[weight].reshape(len(found), -1).tolist()):
            products = [[w * end for end in ends] + [0] for w in row]
            assert found[channel].tolist() == [sum(map(min, products)), sum(map(max, products))]


def test_an_end_is_found_once_for_each_layer_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another graph's layer of the same name has its own, also where it lies in the same place."""
    asked = list[Tensor]()
    real = quick.quick

    def counted(target: Tensor, clip: Clip, requant: Requant, sums: IntArray) -> quick.Quick | None:
        asked.append(target)
        return real(target, clip, requant, sums)

    monkeypatch.setattr(quick, "quick", counted)
    for seed in range(3):
        net = Net((3, 3, 2), np.random.default_rng(seed))
        net.conv(4)
        graph = net.graph()
        (op,) = graph.operators
        assert isinstance(op, Conv2d)
        ends = [quick.quick_end(op, graph) for _ in range(3)]
        assert len(asked) == seed + 1 and all(end is ends[0] for end in ends)
        weights, bias = (graph.constants[name] for name in op.parameters)
        sums = quick.channel_sums(op, graph) + bias[:, None]
        again = real(graph.tensors[op.output], op.clip, op.requant, sums)
        assert (again is None) == (ends[0] is None) and len(weights) == 4
        if again and ends[0]:
            equal(again.constants, ends[0].constants)
        del graph, op
