"""int16 activations with int8 weights: equal to tflite-micro, and so is the C of all cores;
those of ONNX beside onnxruntime."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization import QuantType

from pipeline.datasets.npz import Npz
from pipeline.errors import ThimbleError
from pipeline.frames import raw_only, stored
from pipeline.frontends.none import NoFrontend
from pipeline.graph.tensor import DType
from pipeline.importers.onnx import Onnx
from pipeline.quantize import samples
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.targets.predictor import Predictor
from tests.boards import load_hardware
from tests.codegen.support import checked, frames, host, on_board
from tests.importers.onnx_models import IMAGE, model, quantized
from tests.importers.support import first, real, units_off
from tests.importers.test_tflite_unsigned import PRODUCTS, turned
from tests.importers.tflite_reference import assert_equal, imported, reference
from tests.importers.tflite_writer import Writer
from tests.tiers import quick


def case(kind: str, seed: int) -> bytes:
    """The int8 case of ``seed`` with activations 256 times as fine, zero points of 0, and biases of
    64 bits."""

    def content(net: Writer, *ends: Any) -> bytes:
        weights = {op["in"][1] for op in net.operators if op["kind"] in PRODUCTS}
        for number, each in enumerate(net.tensors):
            if each["scales"].size and each["dtype"] == "INT8" and number not in weights:
                each |= {"dtype": "INT16", "zeros": 0 * each["zeros"]}
                each["scales"] = each["scales"] / np.float32(256)
        for op in net.operators:
            if op["kind"] in PRODUCTS and len(op["in"]) > 2:
                bias = net.tensors[op["in"][2]]
                bias |= {"dtype": "INT64", "data": bias["data"].astype(np.int64) * 256}
        return write(net, *ends)

    write = Writer.content
    return turned(content, kind, seed)


PARTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MEAN", "SUM")
KINDS = (*PARTED, "MAX_POOL_2D", "CONCATENATION", "PAD", "SLICE", "SPLIT", "TRANSPOSE", "RESHAPE")


def sums(shift: int = 0) -> bytes:
    """Two branches of a convolution, added and multiplied; functions of both; constants."""
    net, rng = Writer(), np.random.default_rng(4)
    x, w = net.tensor((1, 5, 4, 3), 1e-4, 0, "INT16"), rng.integers(-127, 128, (3, 1, 1, 3))
    held = net.constant(w.astype(np.int8), [0.01 * 2.0**-shift] * 3)
    b = net.constant(rng.integers(-90_000, 90_000, 3))
    many = net.constant(rng.integers(-32767, 32768, (1, 5, 4, 3)).astype(np.int16), [1e-4])
    few = net.constant(rng.integers(-32767, 32768, (1, 1, 1, 3)).astype(np.int16), [5e-5])
    scales = (2e-4, 3e-4, 8e-5, 2.0**-15, 2.0**-15, 1e-4, 1e-4, 3e-5, 3e-4, 3e-4, 2.0**-15)
    scales += (2e-4, 2e-4, 3e-4, 1e-4, 1e-4, 1e-4, 1e-4)
    whole = [net.ints((0, 0, 0, 0)), net.ints((1, 5, 4, 3))]
    parts = [net.tensor((1, 5, 4, 3), scale, 0, "INT16") for scale in scales]
    net.operator("CONV_2D", [x, held, b], parts[:1], "Conv2DOptions", StrideH=1, StrideW=1)
    net.operator("ADD", [x, parts[0]], parts[1:2], "AddOptions", FusedActivationFunction=1)
    net.operator("MUL", parts[:2], parts[2:3], "MulOptions")
    net.operator("LOGISTIC", parts[1:2], parts[3:4])
    net.operator("TANH", parts[2:3], parts[4:5])
    net.operator("ADD", parts[3:5], parts[5:6], "AddOptions")
    net.operator("LEAKY_RELU", parts[5:6], parts[6:7], "LeakyReluOptions", Alpha=-0.3)
    net.operator("RELU", parts[6:7], parts[7:8])
    net.operator("SUB", [x, parts[0]], parts[8:9], "SubOptions")
    net.operator("RELU6", parts[8:9], parts[9:10])
    net.operator("SOFTMAX", parts[9:10], parts[10:11], "SoftmaxOptions", Beta=1.0)
    net.operator("ADD", [x, many], parts[11:12], "AddOptions")
    net.operator("MUL", [few, parts[11]], parts[12:13], "MulOptions")
    net.operator("SUB", [parts[12], few], parts[13:14], "SubOptions")
    net.operator("ABS", parts[13:14], parts[14:15])
    net.operator("MAXIMUM", [many, parts[14]], parts[15:16])
    net.operator("SLICE", [parts[14], *whole], parts[17:], "SliceOptions")
    net.operator("MINIMUM", [parts[15], parts[17]], parts[16:17])
    return net.content([x], [parts[7], parts[10], parts[16]])


ALONE = [
    *(("LOGISTIC", scale, 2.0**-15) for scale in (2.0**-12, 3.3e-4, 5e-6)),
    *(("TANH", scale, 2.0**-15) for scale in (2.0**-11, 1e-4, 0.01)),
    ("QUANTIZE", 1e-4, 2e-4),
]


@pytest.mark.parametrize(("kind", "scale", "out"), quick(3, ALONE))
def test_functions_of_every_integer(kind: str, scale: float, out: float, tmp_path: Path) -> None:
    net, integers = Writer(), np.arange(-(1 << 15), 1 << 15)
    x, y = (net.tensor((1, 1 << 16), each, 0, "INT16") for each in (scale, out))
    content = net.alone(kind, x, [], y)
    graph = imported(content, tmp_path)
    assert np.array_equal(graph.evaluate(integers[None]), reference(content, integers[None]))


@pytest.mark.parametrize("kind", KINDS)
def test_equals_tflite_micro(kind: str, tmp_path: Path) -> None:
    tried = 0
    for seed in range(8):
        content = case(kind, seed)
        try:
            assert_equal(content, imported(content, tmp_path), 4, seed)
            tried += 1
        except RuntimeError:  # weights of 4 bits, which tflite-micro refuses
            continue
    assert tried > 4


def test_sums_and_products(tmp_path: Path) -> None:
    content = sums()
    graph = imported(content, tmp_path)
    assert_equal(content, graph, 4, 1)
    checked(tmp_path / "c", graph, Ordinary().plan(graph, host()))
    checked(tmp_path / "parts", graph, Partial().plan(graph, host()), interpreted=True)
    with pytest.raises(ThimbleError, match="too small for 16 bits"):
        imported(sums(12), tmp_path)


def test_images_of_16_bits(tmp_path: Path) -> None:
    """A data set's integers are what the C takes; raw values fill the range."""
    graph, rng = imported(case("CONV_2D", 2), tmp_path), np.random.default_rng(0)
    takes = graph.tensors[graph.input]
    images = rng.integers(-(1 << 15), 1 << 15, (8, *takes.shape)).astype(np.int16)
    held = {f"{part}_labels": np.zeros(8, np.uint8) for part in ("train", "test")}
    np.savez(tmp_path / "a.npz", train_images=images, test_images=images, **held)
    own = Npz(path=str(tmp_path / "a.npz"), stored=True, validation=1)
    given = samples.test_frames(graph, NoFrontend().applied(own.arrays()), {"images": 3})
    assert given.dtype == np.int16 and np.array_equal(given, images)
    found = Predictor.build(graph, Ordinary().plan(graph, host()), host()).predict(given)
    assert np.array_equal(found.astype(np.int64), graph.evaluate(given.astype(np.int64)))
    pixels = np.zeros((1, *takes.shape), np.uint8)
    assert set(stored(pixels, takes).flat) == {-32768} == {-1 - stored(pixels + 255, takes).max()}
    with pytest.raises(ThimbleError, match="this one is still to be quantized"):
        raw_only(own.arrays())
    with pytest.raises(ThimbleError, match="values beyond int8"):
        stored(images, replace(takes, dtype=DType.parse("int8")))
    np.savez(tmp_path / "a.npz", train_images=images / 2, test_images=images, **held)
    with pytest.raises(ThimbleError, match=r"train_images in .* is float64: data.stored=true"):
        own.arrays()


@pytest.mark.parametrize(("kind", "seed"), [(QuantType.QInt16, 1), (QuantType.QUInt16, 3)], ids=str)
def test_equals_onnxruntime(kind: QuantType, seed: int, tmp_path: Path) -> None:
    """Within rounding, also where other units of 16 bits are added, multiplied, beyond 32 bits,
    and joined, and of lines that stand for functions."""
    net = (
        "a = Conv<pads=[1, 1, 1, 1]>(x, w); r = Relu(a); p = MaxPool<kernel_shape=[2, 2]>(r); "
        "b = Conv(p, v); q = Add(b, p); t = Tanh(q); i = Mul(b, k); s = Sigmoid(i); "
        "l = LeakyRelu(i); o = Softmax<axis=1>(l); j = Add(s, o); c = Concat<axis=1>(t, j, t); "
        "m = Mul(q, b); z = GlobalAveragePool(m); "
        "e = GlobalAveragePool(c); d = Concat<axis=1>(z, e); f = Flatten(d); "
        "y = Gemm<transB=1>(f, g)"
    )
    rng, sizes = np.random.default_rng(seed), {"w": (5, 4, 3, 3), "v": (5, 5, 1, 1), "g": (3, 20)}
    sizes["k"] = (1, 5, 8, 7)
    held = {name: rng.normal(0, 0.5, size).astype(np.float32) for name, size in sizes.items()}
    x = rng.uniform(-1, 1, (40, *IMAGE[1:])).astype(np.float32)
    signs = {"ActivationSymmetric": kind is QuantType.QInt16}
    made = model(net, IMAGE, held, 21)
    for node in made.graph.node:
        node.name = node.output[0]
    path = quantized(made, tmp_path, x, kind=kind, extra_options=signs)
    graph = Onnx(str(path)).graph()
    given = frames(graph, 40)
    off = units_off(graph, path, first(real(graph, graph.input, given).astype(np.float32)), given)
    assert abs(off).max() <= 4 and str(graph.tensors[graph.output].dtype) == "int16"
    checked(tmp_path / "c", graph, Ordinary().plan(graph, host()))


@pytest.mark.parametrize("kind", quick(2, PARTED))
def test_the_c_is_exact(kind: str, tmp_path: Path) -> None:
    graph = imported(case(kind, 2), tmp_path)
    checked(tmp_path, graph, Ordinary().plan(graph, host()))


@pytest.mark.ci
@pytest.mark.parametrize("board", ["arduino_mega", "nucleo_g0b1re", "nucleo_f446re"])
def test_on_a_chip(board: str, tmp_path: Path) -> None:
    graph = imported(sums(), tmp_path)
    on_board(tmp_path, graph, load_hardware(board), given=frames(graph, 3))
