"""uint8 .tflite files of any zero points: as LiteRT 2.3.0's reference kernels compute them; weights
beyond int8 and means that round up, in C."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pytest

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import within_int8
from pipeline.importers.tflite_model import FileModel
from pipeline.kernels import Form, choose
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.boards import load_hardware
from tests.codegen.support import checked, frames, host, on_board
from tests.comparing import equal
from tests.graphs import Chained, Net
from tests.importers.test_tflite_refusals import conv
from tests.importers.tflite_cases import CASES
from tests.importers.tflite_networks import network
from tests.importers.tflite_reference import imported
from tests.importers.tflite_variables import variable
from tests.importers.tflite_writer import Writer
from tests.tiers import quick

PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def case(kind: str, seed: int) -> bytes:
    """The int8 case of ``seed``, its integers 128 greater; weights have one scale, and a zero point
    that is often too far from the middle for int8."""
    rng, write = np.random.default_rng(seed), Writer.content

    def content(net: Writer, *ends: Any) -> bytes:
        weights = {op["in"][1] for op in net.operators if op["kind"] in PRODUCTS}
        for number, each in enumerate(net.tensors):
            if each["scales"].size and each["dtype"] in ("INT8", "INT4"):
                _turn(each, number in weights, rng)
        for op in net.operators:
            if op["kind"] in PRODUCTS and len(op["in"]) > 2:
                given, weight, bias = (net.tensors[place] for place in op["in"])
                bias["scales"] = given["scales"] * weight["scales"]
            if op["kind"] == "CONCATENATION":
                result = net.tensors[op["out"][0]]
                result["scales"] = result["scales"] * np.float32(rng.choice([1, 1.3]))
                result["zeros"] = result["zeros"] + rng.integers(0, 2)
        return write(net, *ends)

    return turned(content, kind, seed)


def turned(content: Callable[..., bytes], kind: str, seed: int) -> bytes:
    """The int8 case of ``seed`` with another ``Writer.content``."""
    make = {**CASES, "variable": variable}.get(kind, network)
    with patch.object(Writer, "content", content):
        return make(np.random.default_rng(seed))


def _turn(tensor: dict[str, Any], weights: bool, rng: np.random.Generator) -> None:
    if tensor["dtype"] == "INT4" or weights:
        tensor["data"] = rng.integers(0, 256, tensor["dims"]).astype(np.uint8)
        tensor["zeros"] = np.array([rng.choice([128, rng.integers(100, 160)])])
        tensor["scales"] = tensor["scales"][:1]
    else:
        tensor["zeros"] = tensor["zeros"] + 128
        if tensor["data"] is not None:
            tensor["data"] = tensor["data"].view(np.uint8) ^ np.uint8(128)
    tensor["dtype"] = "UINT8"


SEEDS = range(12)
UNKNOWN = {"CONV_2D": (7, 10)}
"""Seeds without a bias, which LiteRT wants."""
LITERT = {
    "CONV_2D": 4043686449, "DEPTHWISE_CONV_2D": 1306016822, "AVERAGE_POOL_2D": 1323460109,
    "MAX_POOL_2D": 4015353120, "ADD": 3151398744, "MUL": 3102095590, "CONCATENATION": 3812712908,
    "PAD": 3613601239, "RESHAPE": 3390028255, "SOFTMAX": 2634941644, "LOGISTIC": 771981086,
    "TANH": 2535966708, "RELU": 1098495231, "RELU6": 872198210,
}  # fmt: skip
"""CRC-32 of what it gives for four frames of each seed. Its dense layers round once, those of int8,
too, where TensorFlow's source and tflite-micro round twice: they are compared with the source."""


def drawn(graph: Graph, seed: int) -> np.ndarray:
    shape = (4, *graph.tensors[graph.input].shape)
    return np.random.default_rng(seed).integers(-128, 128, shape)


@pytest.mark.parametrize("kind", LITERT)
def test_equals_litert(kind: str, tmp_path: Path) -> None:
    found = 0
    for seed in SEEDS:
        if seed not in UNKNOWN.get(kind, ()):
            graph = imported(case(kind, seed), tmp_path)
            bytes_ = (graph.evaluate(drawn(graph, seed)) + 128).astype(np.uint8).tobytes()
            found = crc32(bytes_, found)
    assert found == LITERT[kind]


def test_dense_layers_equal_the_source(tmp_path: Path) -> None:
    """Products of integers without sign, less the zero points of both, and one float32 product."""
    zeros = set()
    for seed in SEEDS:
        content = case("FULLY_CONNECTED", seed)
        graph, node = imported(content, tmp_path), FileModel(content).node(0)
        (x, w, *bias), y = node.inputs, node.output
        assert x is not None and w is not None
        stored = drawn(graph, seed)
        left = stored.reshape(len(stored), -1, w.dims[1]) - x.zero_point
        right = np.frombuffer(w.data, np.int8).reshape(w.dims).astype(int) - w.zero_point
        sums = left @ right.T
        if bias:
            sums = sums + np.frombuffer(bias[0].data, np.int32)
        factor = float(np.float32(x.scale) * np.float32(w.scale)) / y.scale
        wanted = FixedPoint.of([factor]).apply(sums) + y.zero_point
        op = next(op for op in graph.operators if op.weighted)
        low, high = op.clip or (-128, 127)  # type: ignore[attr-defined]
        equal(graph.evaluate(stored).reshape(-1), wanted.clip(low, high).reshape(-1))
        zeros.add(graph.tensors[op.parameters[0]].zero_point)
    assert 0 in zeros and len(zeros) > 3


@pytest.mark.parametrize("zeros", [0, (9, -7, 3), 100])
def test_zero_points_of_int8_weights_count(zeros: int | tuple[int, ...], tmp_path: Path) -> None:
    """Take one of each channel, or beyond int8, which C computes, too."""
    most = 128 if zeros == 100 else 100
    weights = np.random.default_rng(0).integers(-most, most, (3, 1, 1, 2)).astype(np.int8)
    graph = imported(
        conv(weights, 0.01 if isinstance(zeros, int) else (0.01,) * 3, zeros), tmp_path
    )
    given = drawn(graph, 0)
    sums = (given - 3) @ (weights[:, 0, 0].T.astype(int) - np.array(zeros))
    wanted = FixedPoint.of([0.1 * np.float32(0.01) / 0.1]).apply(sums) + 3
    equal(graph.evaluate(given), wanted.clip(-128, 127))
    assert bool(graph.tensors["net/tensor_1"].zero_point) == (zeros == 100)
    checked(tmp_path / "c", graph, Ordinary().plan(graph, host()))


PARTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D")


@pytest.mark.parametrize("seed", quick(1, [1, 2, 3, 4, 5, 6], ci=2))
@pytest.mark.parametrize("kind", PARTED)
def test_the_c_is_exact(kind: str, seed: int, tmp_path: Path) -> None:
    graph = imported(case(kind, seed), tmp_path)
    checked(tmp_path / "whole", graph, Ordinary().plan(graph, host()))
    if kind == "CONV_2D":
        checked(tmp_path / "parts", graph, Partial().plan(graph, host()), interpreted=True)


@pytest.mark.parametrize(
    "board", quick(0, ["arduino_mega", "nucleo_g0b1re", "nucleo_f446re"], ci=2)
)
@pytest.mark.parametrize("kind", PARTED)
def test_on_a_chip(kind: str, board: str, tmp_path: Path) -> None:
    """Weights with a zero point run by portable C."""
    graph, hardware = imported(case(kind, 1), tmp_path), load_hardware(board)
    op = graph.operators[0]
    if op.weighted and graph.tensors[op.parameters[0]].zero_point:
        assert choose(Form.whole(op, graph), hardware).name.startswith("int8.")
    on_board(tmp_path, graph, hardware, given=frames(graph, 3))


def test_channels_without_weights_are_left_out(tmp_path: Path) -> None:
    """Those that are their zero point count as none."""
    net = Chained(Net((4, 4, 3), np.random.default_rng(1)))
    graph = net.conv(4, (1, 1)).conv(2, (1, 1)).graph()
    name = graph.operators[1].parameters[0]
    weights = graph.constants[name].clip(-100, 27) + 100
    weights[..., 2] = 100
    tensors = {**graph.tensors, name: replace(graph.tensors[name], zero_point=100)}
    graph = replace(graph, tensors=tensors, constants={**graph.constants, name: weights})
    *_, (_, less) = passes.one_by_one(graph, ["dead_channels"])
    assert less.tensors[less.operators[0].output].shape[-1] == 3
    equal(less.evaluate(frames(graph)), graph.evaluate(frames(graph)))


def test_what_is_no_8_bits_is_refused(tmp_path: Path) -> None:
    assert within_int8("w", np.array([-255, 0]))[1] == 127
    assert within_int8("w", np.array([0, 255]))[1] == -128
    for ends in ((-200, 100), (-256, -1), (1, 256)):
        with pytest.raises(ThimbleError, match="no 8 bits"):
            within_int8("w", np.array(ends))
    with pytest.raises(ThimbleError, match="operator 0, MEAN: of uint8 it is not supported"):
        imported(case("MEAN", 1), tmp_path)
