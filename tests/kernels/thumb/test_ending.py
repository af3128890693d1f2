"""Sums that end by two products of 32 bits: every sum of a layer, not only those where what is
stored rises, gives what the graph does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graph.graph import Graph
from pipeline.graph.operator import clipped_to
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.quick import channel_sums
from pipeline.kernels.thumb.ending import ANY, UNIT, Narrow, narrow_end
from tests.comparing import equal
from tests.graphs import Net


def layer(
    seed: int, scales: IntArray | None = None, dtype: str = "int8", zero_point: int | None = None,
    depth: int = 6, once: bool = False,
) -> tuple[Graph, Conv2d]:  # fmt: skip
    net = Net((2, 2, depth), np.random.default_rng(seed), dtype)
    requant = None if scales is None else FixedPoint.of(scales)
    if once and scales is not None:
        requant = FixedPoint.rounding_once(scales, depth << 16)
    net.conv(3, (1, 1), requant=requant)
    if zero_point is not None:
        net.tensors[net.last] = replace(net.tensors[net.last], zero_point=zero_point)
    graph = net.graph()
    op = graph.operators[-1]
    assert isinstance(op, Conv2d)
    return graph, op


def every_sum(op: Conv2d, graph: Graph, most: int = 100_000) -> IntArray:
    """(n, channels), biases included; of many as many as ``most``, both ends among them."""
    sums = channel_sums(op, graph) + graph.constants[op.parameters[1]][:, None]
    count = min(most, int((sums[:, 1] - sums[:, 0]).max()) + 1)
    steps = np.linspace(0.0, 1.0, count)[:, None]
    return np.rint(sums[:, 0] + steps * (sums[:, 1] - sums[:, 0])).astype(np.int64)


def checked(op: Conv2d, graph: Graph) -> Narrow | None:
    found = narrow_end(op, graph)
    if found is not None:
        sums = every_sum(op, graph)
        wanted = clipped_to(graph.tensors[op.output], op.clip, op.requant.apply(sums))
        equal(found.stored(sums), wanted & 255)
        # what the assembly multiplies fits its registers
        most, part, *_ = found.constants.T
        inside = most < ANY
        assert ((most[inside] >> found.coarse) * part[inside] < 1 << 32).all()
        assert (part < 1 << found.bits).all()
    return found


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000), st.floats(-13.0, 1.0), st.sampled_from(["int8", "uint8"]),
    st.integers(0, 255), st.booleans(),
)  # fmt: skip
def test_every_sum_ends_as_in_the_graph(
    seed: int, exponent: float, dtype: str, zero: int, once: bool
) -> None:
    rng = np.random.default_rng(seed)
    scales = 2.0**exponent * rng.uniform(0.5, 1.0, 3)
    zero_point = zero - 128 if dtype == "int8" else zero
    graph, op = layer(seed, scales, dtype, zero_point, once=once)
    checked(op, graph)


def test_typical_layers_have_one() -> None:
    found = [checked(*reversed(layer(seed))) for seed in range(15)]
    assert sum(end is not None for end in found) >= 14


def test_results_below_the_zero_point_take_a_step() -> None:
    scales = np.array([0.0021, 0.0017, 0.0013])
    graph, op = layer(1, scales, zero_point=0)
    found = checked(op, graph)
    assert found is not None and found.steps is not None
    first, step = found.steps.T
    assert (first > 0).all() and (step != 0).all() and (abs(step) < 1 << UNIT).all()
    graph, op = layer(1, scales, zero_point=-128)
    found = checked(op, graph)
    assert found is not None and found.steps is None


def test_a_channel_that_decides_nothing_is_a_constant() -> None:
    graph, op = layer(3, np.array([0.002, 2.0**-30, 0.003]), zero_point=5)
    found = checked(op, graph)
    assert found is not None
    most, part, whole, offset = found.constants[1]
    assert (most, part, whole, offset >> UNIT) == (ANY, 0, 0, 5)


def test_shifts_that_round_halves_to_even_have_none() -> None:
    graph, op = layer(0)
    object.__setattr__(op, "requant", PowerOfTwo(right_shift=7))
    assert narrow_end(op, graph) is None


@pytest.mark.parametrize("exponent, fits", [(-8, True), (-20, False)])
def test_sums_of_many_bits_do_not_fit(exponent: int, fits: bool) -> None:
    """2 ** 24 times a small scale is too coarse for a sum of many bits."""
    graph, op = layer(2, np.full(3, 0.7 * 2.0**exponent), depth=4000)
    assert (checked(op, graph) is not None) == fits
