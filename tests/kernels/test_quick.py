"""The reach of a channel's sums, against products one by one."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.kernels.cortex_m.quick import channel_sums
from tests.contracts.operators import MAKERS, Conv2d, Dense


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
