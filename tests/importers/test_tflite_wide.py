"""int16 activations with int8 weights: equal to tflite-micro, and so is the C of all cores;
those of ONNX beside onnxruntime."""

from pathlib import Path

import numpy as np
import pytest
from onnxruntime.quantization import QuantType

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers.onnx import Onnx
from pipeline.importers.tflite import TFLite
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.boards import load_hardware
from tests.codegen.support import checked, frames, host, on_board
from tests.importers.onnx_models import IMAGE, model, quantized, weights
from tests.importers.support import first, real, units_off
from tests.importers.tflite_reference import imported
from tests.importers.tflite_wide import case
from tests.importers.tflite_writer import Writer
from tests.tiers import quick

PARTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MEAN")
KINDS = (*PARTED, "MAX_POOL_2D", "CONCATENATION", "PAD", "SLICE", "SPLIT", "TRANSPOSE", "RESHAPE")


def agrees(content: bytes, graph: Graph, seed: int) -> bool:
    """Compare four frames with tflite-micro; the C takes the upper 8 bits of the input."""
    pytest.importorskip("tflite_micro")
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 22)
    details, outputs = interpreter.get_input_details(0), []
    given = frames(graph, 4, seed)
    for frame in given:
        interpreter.set_input((frame * 256).astype("i2").reshape(details["shape"]), 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0).reshape(-1))
    return np.array_equal(graph.evaluate(given).reshape(4, -1), outputs)


def sums(shift: int = 0) -> bytes:
    """Two branches of a convolution, added and multiplied."""
    net, rng = Writer(), np.random.default_rng(4)
    x, w = net.tensor((1, 5, 4, 3), 1e-4, 0, "INT16"), rng.integers(-127, 128, (3, 1, 1, 3))
    held = net.constant(w.astype(np.int8), [0.01 * 2.0**-shift] * 3)
    b = net.constant(rng.integers(-90_000, 90_000, 3))
    parts = [net.tensor((1, 5, 4, 3), scale, 0, "INT16") for scale in (2e-4, 3e-4, 8e-5)]
    net.operator("CONV_2D", [x, held, b], parts[:1], "Conv2DOptions", StrideH=1, StrideW=1)
    net.operator("ADD", [x, parts[0]], parts[1:2], "AddOptions", FusedActivationFunction=1)
    net.operator("MUL", parts[:2], parts[2:], "MulOptions")
    return net.content([x], parts[2:])


@pytest.mark.parametrize("kind", KINDS)
def test_equals_tflite_micro(kind: str, tmp_path: Path) -> None:
    tried = 0
    for seed in range(8):
        content = case(kind, seed)
        try:
            assert agrees(content, imported(content, tmp_path), seed), seed
            tried += 1
        except RuntimeError:  # weights of 4 bits, which tflite-micro refuses
            continue
    assert tried > 4


def test_sums_and_products(tmp_path: Path) -> None:
    content = sums()
    graph = imported(content, tmp_path)
    assert agrees(content, graph, 1)
    checked(tmp_path / "c", graph, Ordinary().plan(graph, host()))
    checked(tmp_path / "parts", graph, Partial().plan(graph, host()), interpreted=True)
    with pytest.raises(ThimbleError, match="too small for 16 bits"):
        imported(sums(12), tmp_path)


@pytest.mark.parametrize("kind", [QuantType.QInt16, QuantType.QUInt16], ids=str)
def test_equals_onnxruntime(kind: QuantType, tmp_path: Path) -> None:
    """Within rounding, also where other units of 16 bits are added and multiplied: four units."""
    net = (
        "a = Conv<pads=[1, 1, 1, 1]>(x, w); r = Relu(a); p = MaxPool<kernel_shape=[2, 2]>(r); "
        "b = Conv(p, v); q = Add(b, p); m = Mul(q, b); z = GlobalAveragePool(m); f = Flatten(z); "
        "y = Gemm<transB=1>(f, g)"
    )
    held = {"w": weights(5, 4, 3, 3), "v": weights(5, 5, 1, 1), "g": weights(3, 5)}
    x = np.random.default_rng(1).uniform(-1, 1, (40, *IMAGE[1:])).astype(np.float32)
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
    assert str(TFLite(str(tmp_path / "net.tflite")).graph().tensors[graph.output].dtype) == "int16"
