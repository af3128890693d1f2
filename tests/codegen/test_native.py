"""Generated C, compiled natively with sanitizers, equals the integer graph bit for bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType, Tensor
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import Native, agrees, frames, uno
from tests.comparing import equal
from tests.strategies.chains import STRATEGIES, Chain, mnist
from tests.tiers import quick

PLACES = ("sram", "flash", "stream")
BY_STRATEGY = [
    *((Herringbone, "slots", place) for place in PLACES),
    *zip(STRATEGIES, cycle(["slots", "contiguous"]), cycle(PLACES), strict=False),
    *product(STRATEGIES, ["slots", "contiguous"], PLACES),
]


@pytest.mark.parametrize(
    ("strategy", "layout", "weights_in"),
    quick(1, dict.fromkeys(BY_STRATEGY), ci=2 + len(STRATEGIES)),
    ids=lambda value: getattr(value, "name", value),
)
def test_mnist_by_every_strategy(
    strategy: type, layout: str, weights_in: str, tmp_path: Path
) -> None:
    graph, hardware = mnist().graph(), uno(weights_in)
    plan = strategy(layout).plan(graph, hardware)
    assert agrees(Native(tmp_path, graph, plan, hardware))


def test_any_chunking_of_the_input(tmp_path: Path) -> None:
    graph = mnist().graph()
    native = Native(tmp_path, graph, Herringbone("slots").plan(graph, uno()), uno())
    assert all(agrees(native, 3, chunk) for chunk in (1, 13, 28, 500, 784))


CHAINS = {
    "padding": lambda: Chain((7, 6, 2)).conv("a", 3, padding=(1, 1, 1, 1)).dense("d", 4),
    "lopsided padding": lambda: Chain((7, 6, 3)).conv("a", 4, padding=(0, 2, 1, 0)).dense("d", 3),
    "by columns": lambda: Chain((4, 9, 3)).conv("a", 3, padding=(1, 1, 1, 1)).dense("d", 3),
    "bytes by columns": lambda: Chain((3, 9, 2), "int8").conv(
        "a", 2, dtype="int8", padding=(1, 1, 2, 0)
    ),
    "strides": lambda: Chain((9, 8, 3)).conv("a", 5, stride=(2, 3)).dense("d", 4),
    "dilation": lambda: Chain((9, 9, 2)).conv("a", 4, dilation=(2, 1)).dense("d", 4),
    "pointwise": lambda: Chain((5, 5, 4)).conv("a", 9, 1).conv("b", 3, 1).dense("d", 2),
    "flat kernel": lambda: Chain((6, 9, 2)).conv("a", 6, (1, 5)).maximum("p").dense("d", 3),
    "many channels": lambda: Chain((6, 6, 3)).conv("a", 17).conv("b", 23).dense("d", 5),
    "one channel": lambda: Chain((6, 6, 1)).conv("a", 1).conv("b", 1).dense("d", 1),
    "pooled twice": lambda: Chain((16, 12, 3), "uint8").average("p").average("q", 2).dense("d", 3),
    "colour pooled": lambda: Chain((8, 12, 3), "uint8").average("p").conv("a", 7).dense("d", 3),
    "pooled by 3": lambda: Chain((9, 6, 1), "uint8").average("p", 7, kernel=(3, 2), stride=(3, 2)),
    "bytes": lambda: Chain((6, 6, 3), "uint8").conv("a", 4, dtype="uint8").dense("d", 5),
    "signed bytes": lambda: Chain((6, 6, 2), "int8").conv("a", 4, dtype="int8").dense("d", 5),
    "signed nibbles": lambda: Chain((6, 6, 2), "int4").conv("a", 4, dtype="int4").dense("d", 5),
    "nibbles to bytes": lambda: Chain((6, 6, 2)).conv("a", 3, dtype="uint8").maximum("p"),
    "wide outputs": lambda: Chain((4, 4, 3)).dense("d", 6, "int32"),
    "dense to dense": lambda: Chain((4, 4, 3)).dense("a", 9, "uint4").dense("d", 6),
    "maximum first": lambda: Chain((8, 8, 2), "int8").maximum("p").dense("d", 3),
}  # fmt: skip


@pytest.mark.parametrize("layout", quick(1, ["slots", "contiguous"], ci=0))
@pytest.mark.parametrize("name", quick(list(CHAINS)[::4], CHAINS))
def test_other_chains(name: str, layout: str, tmp_path: Path) -> None:
    chain = CHAINS[name]()
    if chain.tensors[chain.last].dtype.bits < 8:
        chain = chain.dense("last", 3)
    graph = chain.graph()
    plan = Herringbone(layout).plan(graph, uno())
    assert agrees(Native(tmp_path, graph, plan, uno(), sanitize=layout == "slots"))


@pytest.mark.ci
def test_rows_are_counted_to_65535(tmp_path: Path) -> None:
    """One more is refused, see test_refusals."""
    chain = Chain((65_535, 2, 1), "uint8").average("p", 5, kernel=(15, 2), stride=(15, 2))
    graph = chain.dense("d", 2).graph()
    plan = Herringbone("contiguous").plan(graph, uno())
    assert agrees(Native(tmp_path, graph, plan, uno()), 2)


def wider(graph: Graph) -> Graph:
    """The same network with int8 weights and int32 biases out of int8's range."""
    rng = np.random.default_rng(3)
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    for name, values in constants.items():
        bits, limit = (8, 128) if name.endswith("weight") else (32, 5000)
        tensors[name] = replace(tensors[name], dtype=DType(bits, True))
        constants[name] = rng.integers(-limit, limit, values.shape)
    return replace(graph, tensors=tensors, constants=constants)


@pytest.mark.parametrize(
    ("dtype", "weights_in"),
    quick(1, [("int8", "stream"), ("uint4", "sram"), ("int8", "flash"), ("uint4", "stream")]),
)
def test_byte_weights_and_long_biases(dtype: str, weights_in: str, tmp_path: Path) -> None:
    graph = wider(Chain((6, 6, 3), dtype).conv("a", 5, dtype=dtype).dense("d", 4, "int32").graph())
    hardware = uno(weights_in)
    plan = Herringbone("slots").plan(graph, hardware)
    assert agrees(Native(tmp_path, graph, plan, hardware))


@pytest.mark.parametrize("streams", [True, False])
def test_image_that_is_kept(streams: bool, tmp_path: Path) -> None:
    graph = Chain((6, 6, 2)).conv("a", 4).dense("d", 3).graph()
    hardware = uno(streams=streams)
    plan = Ordinary("slots").plan(graph, hardware)
    assert agrees(Native(tmp_path, graph, plan, hardware), chunk=5)


@pytest.mark.parametrize("value", quick(1, [-8, 7, 0], ci=1))
def test_extreme_weights(value: int, tmp_path: Path) -> None:
    """Saturated sums: every accumulator at an end of its range."""
    graph = mnist().graph()
    constants = {
        name: np.full_like(v, value if name.endswith("weight") else (127 if value > 0 else -128))
        for name, v in graph.constants.items()
    }
    graph = replace(graph, constants=constants)
    plan = Herringbone("slots").plan(graph, uno())
    assert agrees(Native(tmp_path, graph, plan, uno()), 3)


def identity(requant: PowerOfTwo, bias: int, dtype: str) -> Graph:
    """A 1x1 convolution with weight 1: shows what requantization makes of 0 … 15 + bias."""
    tensors = {
        "x": Tensor("x", (4, 4, 1), DType(4, False)),
        "w": Tensor("w", (1, 1, 1, 1), DType(4, True)),
        "b": Tensor("b", (1,), DType(8, True)),
        "y": Tensor("y", (4, 4, 1), DType.parse(dtype)),
    }
    op = Conv2d("c", ("x",), "y", ("w", "b"), requant=requant)
    constants = {"w": np.ones((1, 1, 1, 1), np.int64), "b": np.array([bias])}
    return Graph("identity", tensors, (op,), constants, "x", "y")


@pytest.mark.parametrize("dtype", quick(["int8"], ["uint8", "int8", "int16"]))
@pytest.mark.parametrize(
    ("requant", "bias"),
    [
        (PowerOfTwo(0, 1), 0),
        (PowerOfTwo(1, 2), -17),
        (PowerOfTwo(2, 3), 4),
        (PowerOfTwo(5, 0), -100),
        (PowerOfTwo(0, 2, "floor"), -9),
    ],
)
def test_ties_round_to_even(requant: PowerOfTwo, bias: int, dtype: str, tmp_path: Path) -> None:
    graph = identity(requant, bias, dtype)
    plan = Ordinary("slots").plan(graph, uno())
    every = np.arange(16).reshape(1, 4, 4, 1)
    native = Native(tmp_path, graph, plan, uno(), sanitize=False)
    equal(native(every), graph.outputs(every))


def test_zero_points_and_a_signed_relu(tmp_path: Path) -> None:
    graph = identity(PowerOfTwo(1, 1), -9, "int8")
    tensors = {
        **graph.tensors,
        "x": replace(graph.tensors["x"], zero_point=5),
        "y": replace(graph.tensors["y"], zero_point=-3),
    }
    op = replace(graph.operators[0], clip=(-3, 127))
    graph = replace(graph, tensors=tensors, operators=(op,))
    native = Native(tmp_path, graph, Ordinary("slots").plan(graph, uno()), uno())
    given = frames(graph, 5)
    equal(native(given), graph.outputs(given))
    assert len(np.unique(graph.outputs(given))) > 3
