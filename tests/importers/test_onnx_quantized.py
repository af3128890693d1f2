"""Quantized ONNX beside onnxruntime, on the same integers: one unit an operator; also in the
QOperator format, whose operators take integers."""

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType

from pipeline.errors import ThimbleError
from pipeline.frames import check, stored
from pipeline.graph.graph import Graph
from pipeline.importers.onnx import OPERATORS, Onnx
from tests.importers.onnx_models import (
    IMAGE,
    Array,
    N,
    ints,
    model,
    number,
    parsed_nodes,
    quantized,
    small_network,
    weights,
)
from tests.importers.support import answers, first, last, off_at_random, units_off


def around(
    node: str,
    shape: tuple[int, ...] = IMAGE,
    constants: dict[str, Array] | None = None,
    unsigned: bool = True,
    second: bool = False,
    scales: tuple[float, float, float] = (0.03, 0.05, 0.021),
) -> onnx.ModelProto:
    """Q and DQ before and after ``node``, which makes "o" of "a" (and "b") and the constants,
    already quantized: int8 weights "w" with a scale a channel, int32 biases "bias"."""
    kind = np.uint8 if unsigned else np.int8
    zeros = [np.array(z + (128 if unsigned else 0), kind) for z in (-9, 4, 21)]
    held: dict[str, Array] = {}
    for index, scale in enumerate(scales):
        held |= {f"s{index}": np.float32(scale), f"z{index}": zeros[index]}
    nodes = ["xq = QuantizeLinear(x, s0, z0)", "a = DequantizeLinear(xq, s0, z0)"]
    if second:  # another activation, with its own scale
        nodes += ["n = Neg(a); nq = QuantizeLinear(n, s2, z2); b = DequantizeLinear(nq, s2, z2)"]
    steps = None
    for name, values in (constants or {}).items():
        if name == "w":
            steps = (np.abs(values).reshape(len(values), -1).max(1) / 63).astype(np.float32)
            column = steps.reshape(-1, *(1,) * (values.ndim - 1))
            held |= {"w_q": np.rint(values / column).astype(np.int8), "w_s": steps,
                     "w_z": np.zeros(len(steps), np.int8)}  # fmt: skip
            nodes.append("w = DequantizeLinear<axis=0>(w_q, w_s, w_z)")
        elif name == "bias":
            assert steps is not None
            unit = (steps * np.float32(scales[0])).astype(np.float32)
            held |= {"b_q": np.rint(values / unit).astype(np.int32), "b_s": unit}
            nodes.append("bias = DequantizeLinear<axis=0>(b_q, b_s)")
        else:
            held[name] = values
    nodes += [node, "yq = QuantizeLinear(o, s1, z1); y = DequantizeLinear(yq, s1, z1)"]
    return model(nodes, shape, held)


CASES: dict[str, dict[str, Any]] = {
    "Conv": {"node": "o = Conv<pads=[1, 1, 1, 1]>(a, w, bias)", "constants":
        {"w": weights(5, 4, 3, 3), "bias": weights(5)}},
    "Conv strided, dilated": {"node": "o = Conv<strides=[2, 1], dilations=[1, 2]>(a, w)",
        "constants": {"w": weights(5, 4, 3, 3)}},
    "Conv depthwise": {"node": "o = Conv<group=4>(a, w, bias)", "constants":
        {"w": weights(8, 1, 3, 3), "bias": weights(8)}},
    "Gemm": {"node": "o = Gemm<transB=1>(a, w, bias)", "shape": (1, 30), "constants":
        {"w": weights(7, 30), "bias": weights(7)}},
    "Relu": {"node": "o = Relu(a)"},
    "Clip": {"node": "o = Clip(a, low, high)", "constants": {"low": np.float32(-1),
        "high": np.float32(1.5)}},
    "Sigmoid": {"node": "o = Sigmoid(a)", "scales": (0.03, 1 / 256, 0.02)},
    "Tanh": {"node": "o = Tanh(a)", "scales": (0.03, 1 / 128, 0.02)},
    "HardSwish": {"node": "o = HardSwish(a)"},
    "LeakyRelu": {"node": "o = LeakyRelu<alpha=0.1>(a)"},
    "Add": {"node": "o = Add(a, b)", "second": True},
    "Sub": {"node": "o = Sub(a, b)", "second": True},
    "Mul": {"node": "o = Mul(a, b)", "second": True},
    "Add channels": {"node": "o = Add(a, c)", "constants": {"c": weights(4, 1, 1)}},
    "Mul number": {"node": "o = Mul(a, c)", "constants": {"c": np.float32(0.7)}},
    "Concat": {"node": "o = Concat<axis=1>(a, b)", "second": True},
    "MaxPool": {"node": "o = MaxPool<kernel_shape=[2, 2]>(a)"},
    "MaxPool, one scale": {"node": "o = MaxPool<kernel_shape=[2, 2]>(a)",
        "scales": (0.03, 0.03, 0.03)},
    "AveragePool": {"node": "o = AveragePool<kernel_shape=[3, 2]>(a)",
        "scales": (0.03, 0.0171, 0.02)},
    "GlobalAveragePool": {"node": "o = GlobalAveragePool(a)", "scales": (0.03, 0.004, 0.02)},
    "ReduceMean": {"node": "o = ReduceMean(a, axes)", "scales": (0.03, 0.004, 0.02), "constants":
        {"axes": np.array([2, 3])}},
    "Pad": {"node": "o = Pad(a, pads)", "scales": (0.03, 0.03, 0.03), "constants":
        {"pads": np.array([0, 0, 1, 0, 0, 0, 0, 2])}},
    "Slice": {"node": "o = Slice(a, s, e, axes)", "scales": (0.03, 0.03, 0.03), "constants":
        {"s": np.array([1, 2]), "e": np.array([4, 7]), "axes": np.array([2, 3])}},
    "Resize": {"node": 'o = Resize<mode="nearest">(a, , f)', "scales": (0.03, 0.03, 0.03),
        "constants": {"f": np.array([1, 1, 2, 2], np.float32)}},
    "Softmax": {"node": "o = Softmax(a)", "shape": (1, 10), "scales": (0.03, 1 / 256, 0.02)},
    "Reshape": {"node": "o = Reshape(a, shape)", "shape": (1, 12), "constants":
        {"shape": np.array([1, 12])}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)  # onnxruntime's tool advises pre-processing
    yield
    logging.disable(logging.NOTSET)


def frames(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).random((count, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator], ids=str)
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8], ids=str)
@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
def test_what_onnxruntime_quantizes(
    tmp_path: Path, form: QuantFormat, kind: QuantType, per_channel: bool
) -> None:
    """19 operators end to end: a unit here and there grows along the way, labels agree."""
    if form is QuantFormat.QOperator and kind is QuantType.QInt8:
        kind = QuantType.QUInt8 if per_channel else kind
    path = quantized(
        small_network(), tmp_path, frames(32, 0), form, kind, per_channel=per_channel
    )  # fmt: skip
    graph = Onnx(str(path)).graph()
    assert all(str(graph.tensors[op.output].dtype) == "int8" for op in graph.operators)
    source = graph.tensors[graph.input]
    x = frames(300, 1)
    inputs = np.clip(np.rint(last(x) / np.float32(source.scale[0])) + source.zero_point, -128, 127)
    off = np.abs(units_off(graph, path, x, inputs))
    expected = answers(path, x)
    found = graph.evaluate(inputs.astype(np.int64))
    best = np.sort(expected)
    sure = best[:, -1] - best[:, -2] > graph.tensors[graph.output].scale[0]
    assert off.mean() < 0.5 and off.max() <= 4
    assert (found.argmax(1) == expected.argmax(1))[sure].mean() >= 0.99


@pytest.mark.parametrize("symmetric", [False, True], ids=["affine", "symmetric"])
@pytest.mark.parametrize("limits", [(0.0, 1.0), (-2.1, 2.6)], ids=str)
def test_raw_images_mean_what_the_float_input_does(
    tmp_path: Path, symmetric: bool, limits: tuple[float, float]
) -> None:
    """Whatever scale and zero point the file has for its input."""
    raw = np.random.default_rng(2).integers(0, 256, (40, 8, 8, 3)).astype(np.uint8)
    raw[0], raw[1] = 0, 255
    low, high = limits
    x = first(low + raw * (high - low) / 255).astype(np.float32)
    path = quantized(
        small_network(), tmp_path, x, extra_options={"ActivationSymmetric": symmetric}
    )  # fmt: skip
    graph = Onnx(str(path), input_range=limits).graph()
    source = graph.tensors[graph.input]
    assert (source.zero_point == 0) == symmetric
    found = stored(raw, source)
    plain = np.abs(found.astype(int) - stored(raw, replace(source, raw=None)))
    assert plain.max() <= 1 if not symmetric else plain.max() > 10
    expected = np.rint(last(x) / np.float32(source.scale[0])) + source.zero_point
    assert (np.abs(found - np.clip(expected, -128, 127)) <= 1).all()
    assert (found == np.clip(expected, -128, 127)).mean() > 0.99
    assert np.abs(units_off(graph, path, x, found)).max() <= 4
    graph.save(tmp_path)
    assert Graph.load(tmp_path).tensors[graph.input].raw == limits


def test_a_range_that_is_not_the_inputs_is_one_line(tmp_path: Path) -> None:
    """The network takes 0…255, and the data are said to be 0…1."""
    onnx.save(around("o = Relu(a)", scales=(1.0, 1.0, 1.0)), tmp_path / "net.onnx")
    graph = Onnx(str(tmp_path / "net.onnx")).graph()
    images = np.zeros((1, *graph.tensors[graph.input].shape), np.uint8)
    data = {"test_images": images, "test_labels": np.zeros(1, int)}
    with pytest.raises(ThimbleError, match=r"input_range=\[0.0, 1.0\] makes 2 .* mean -119…136"):
        check(graph, data)
    check(graph, {name: values[:0] for name, values in data.items()})
    check(Onnx(str(tmp_path / "net.onnx"), input_range=(0.0, 120.0)).graph(), data)
    with pytest.raises(ThimbleError, match=r"model.input_range=\[1.0, 0.0\]: give \[low,high\]"):
        Onnx(str(tmp_path / "net.onnx"), input_range=(1.0, 0.0)).graph()


def test_integers_at_both_ends(tmp_path: Path) -> None:
    """uint8 in, uint8 out, without Q at the start nor DQ at the end."""
    held = {"s": np.float32(0.02), "z": np.array(128, np.uint8), "t": np.float32(0.05),
            "w_q": np.rint(weights(5, 4, 1, 1) * 100).astype(np.int8),
            "w_s": np.float32(0.01)}  # fmt: skip
    nodes = ("a = DequantizeLinear(x, s, z); w = DequantizeLinear(w_q, w_s); o = Conv(a, w); "
             "y = QuantizeLinear(o, t, z)")  # fmt: skip
    path = tmp_path / "net.onnx"
    onnx.save(model(nodes, IMAGE, held, kinds=(TensorProto.UINT8, TensorProto.UINT8)), path)
    graph = Onnx(str(path)).graph()
    assert graph.tensors[graph.input].raw is None  # the data's values themselves
    inputs = np.random.default_rng(0).integers(-128, 128, (20, 9, 8, 4))
    expected = answers(path, first(inputs + 128).astype(np.uint8)).astype(np.int64) - 128
    off = graph.evaluate(inputs) - expected
    assert np.abs(off).max() <= 1 and (off != 0).mean() < 0.02


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8])
def test_a_type_that_no_zero_point_says(tmp_path: Path, kind: int) -> None:
    """From opset 21 on ``output_dtype`` says it."""
    nodes = (f"q = QuantizeLinear<output_dtype={kind}>(x, s); a = DequantizeLinear(q, s); "
             f"r = Relu(a); p = QuantizeLinear<output_dtype={kind}>(r, s); "
             "y = DequantizeLinear(p, s)")  # fmt: skip
    made = model(nodes, IMAGE, {"s": np.array(0.02, np.float32)}, opset=21)
    assert not off_at_random(made, tmp_path).any()


def with_constant(made: onnx.ModelProto, name: str, value: Array) -> onnx.ModelProto:
    (held,) = (each for each in made.graph.initializer if each.name == name)
    held.CopyFrom(numpy_helper.from_array(value, name))
    return made


def partly() -> onnx.ModelProto:
    made = around(**CASES["Conv"])
    made.graph.node.insert(2, N("Exp", ["a"], ["e"], name="loose"))
    next(node for node in made.graph.node if node.op_type == "Conv").input[0] = "e"
    return made


HERE = "s0, z0"
"""Scale and zero point of the input."""
OUT = "s1, z1"
"""Scale and zero point of another activation."""
CONV = f"{HERE}, w, ws, wz, {OUT}"
"""Arguments that follow the input of QLinearConv, biases left out."""


def between(
    nodes: str,
    shape: tuple[int, ...] = IMAGE,
    unsigned: bool = True,
    constants: dict[str, Array] | None = None,
    scales: tuple[float, float] = (0.03, 0.05),
    zeros: tuple[int, int] = (-9, 4),
    ends: str = OUT,
) -> onnx.ModelProto:
    """``nodes``, as text, on integers, from "q" to "p", the latter with the quantization ``ends``;
    weights "w" and biases "b" of a convolution, and numbers of the activations' type where a
    constant is a Python int, are there to read."""
    kind = np.uint8 if unsigned else np.int8
    more = 128 if unsigned else 0
    channels = shape[1]
    held: dict[str, Array] = {
        "s0": number(scales[0]), "z0": np.array(zeros[0] + more, kind),
        "s1": number(scales[1]), "z1": np.array(zeros[1] + more, kind),
        "w": np.random.default_rng(0).integers(-63, 64, (5, channels, 3, 3)).astype(np.int8),
        "ws": np.linspace(0.004, 0.008, 5).astype(np.float32), "wz": np.zeros(5, np.int8),
        "b": np.arange(-800, 800, 320).astype(np.int32),
    }  # fmt: skip
    for name, value in (constants or {}).items():
        held[name] = np.array(value + more, kind) if isinstance(value, int) else value
    text = f"q = QuantizeLinear(x, {HERE}); {nodes}; y = DequantizeLinear(p, {ends})"
    read = {name for node in parsed_nodes(text) for name in node.input}
    return model(text, shape, {name: value for name, value in held.items() if name in read})


SLICED = {"from": ints(1), "to": ints(3), "axis": ints(1)}
TWO = {"w": np.random.default_rng(0).integers(-63, 64, (5, 2, 3, 3)).astype(np.int8)}
"""Weights for two channels."""
PADS = ints(0, 0, 1, 2, 0, 0, 0, 1)
INTEGERS: dict[str, dict[str, Any]] = {
    "Slice before QLinearConv": {"nodes":
        f"a = Slice(q, from, to, axis); p = QLinearConv(a, {CONV}, b)", "constants": SLICED | TWO},
    "Split before QLinearConv": {"nodes":
        f"a, r = Split<axis=1, num_outputs=2>(q); p = QLinearConv(r, {CONV}, b)", "constants": TWO},
    "Transpose and Slice before QLinearConv": {"nodes":
        "a = Slice(q, from, to, axis); t = Transpose<perm=[0, 1, 3, 2]>(a); "
        f"p = QLinearConv(t, {CONV}, b)", "constants": SLICED | TWO},
    "MaxPool before QLinearConv": {"nodes":
        f"a = MaxPool<kernel_shape=[2, 2]>(q); p = QLinearConv(a, {CONV}, b)"},
    "Resize before QLinearConv": {"nodes":
        f'a = Resize<mode="nearest">(q, , f); p = QLinearConv(a, {CONV}, b)', "constants":
        {"f": np.array([1, 1, 2, 2], np.float32)}},
    "Pad before QLinearConv": {"nodes": f"a = Pad(q, pads, z0); p = QLinearConv(a, {CONV}, b)",
        "constants": {"pads": PADS}},
    "Pad of channels": {"nodes": "p = Pad(q, pads, z0)", "ends": HERE, "constants":
        {"pads": ints(0, 1, 0, 0, 0, 2, 0, 0)}},
    "Pad by a default": {"nodes": "p = Pad(q, pads)", "ends": HERE, "constants": {"pads": PADS},
        "zeros": (0, 0), "unsigned": False},
    "Concat": {"nodes": f"a = QLinearConv(q, {CONV}, b); m = MaxPool<kernel_shape=[1, 1]>(a); "
        "p = Concat<axis=1>(a, m)"},
    "QLinearConcat": {"nodes": f"a = QLinearConv<pads=[1, 1, 1, 1]>(q, {CONV}, b); "
        f"p = com.microsoft.QLinearConcat<axis=1>({OUT}, q, {HERE}, a, {OUT})"},
    "Clip": {"nodes": "p = Clip(q, low, high)", "ends": HERE, "constants": {"low": -40,
        "high": 55}},
    "Clip from below": {"nodes": "p = Clip(q, low)", "ends": HERE, "constants": {"low": 10}},
    "Clip after QLinearConv": {"nodes": f"a = QLinearConv(q, {CONV}, b); p = Clip(a, low, high)",
        "constants": {"low": 4, "high": 90}},
    "Relu": {"nodes": "p = Relu(q)", "ends": HERE, "unsigned": False},
    "QLinearSoftmax": {"nodes":
        f"p = com.microsoft.QLinearSoftmax<axis=1, opset=13>(q, {HERE}, {OUT})", "shape": (1, 10),
        "scales": (0.04, 1 / 256), "zeros": (3, -128)},
    "QLinearSoftmax of channels": {"nodes":
        f"p = com.microsoft.QLinearSoftmax<axis=1, opset=13>(q, {HERE}, {OUT})",
        "scales": (0.04, 1 / 256), "zeros": (3, -128)},
    "QLinearSoftmax of old": {"nodes":
        f"p = com.microsoft.QLinearSoftmax<axis=1, opset=11>(q, {HERE}, {OUT})", "shape": (1, 10),
        "scales": (0.04, 1 / 256), "zeros": (3, -128)},
    "QLinearAdd": {"nodes": f"r = com.microsoft.QLinearLeakyRelu<alpha=0.5>(q, {HERE}, {OUT}); "
        f"p = com.microsoft.QLinearAdd(q, {HERE}, r, {OUT}, {OUT})"},
    "QLinearGlobalAveragePool": {"nodes":
        f"p = com.microsoft.QLinearGlobalAveragePool(q, {HERE}, {OUT})", "scales": (0.03, 0.004)},
    "QLinearLeakyRelu": {"nodes":
        f"p = com.microsoft.QLinearLeakyRelu<alpha=0.1>(q, {HERE}, {OUT})"},
    "QLinearSigmoid": {"nodes": f"p = com.microsoft.QLinearSigmoid(q, {HERE}, {OUT})",
        "scales": (0.03, 1 / 256), "zeros": (0, -128)},
}  # fmt: skip

EVERY = {name: (around, case) for name, case in CASES.items()}
EVERY |= {f"{name}, of integers": (between, case) for name, case in INTEGERS.items()}
EVERY["Gemm, weights of a zero point"] = (
    lambda **case: with_constant(around(**case), "w_z", np.full(7, 100, np.int8)),
    CASES["Gemm"],
)
LOOSE = {
    **{"HardSwish": 0.01, "Leaky": 0.01},
    **{"QLinearConv": 0.01, "QLinearAdd": 0.02, "QLinearSoftmax": 0.1},
}
"""Shares that may be one unit off: QLinearConv and the kernels of tables compute in float32;
integer softmax here is TensorFlow Lite's."""


@pytest.mark.parametrize("unsigned", [False, True], ids=["int8", "uint8"])
@pytest.mark.parametrize("name", EVERY)
def test_operator(tmp_path: Path, name: str, unsigned: bool) -> None:
    make, case = EVERY[name]
    if case.get("unsigned", unsigned) != unsigned:
        pytest.skip("onnxruntime has it of one type only")
    off = off_at_random(make(**{"unsigned": unsigned, **case}), tmp_path)
    share = max([0.001, *(allowed for part, allowed in LOOSE.items() if part in str(case))])
    assert (off != 0).mean() < share


def test_every_operator_of_integers_is_tried() -> None:
    tried = {node.op_type for case in INTEGERS.values() for node in parsed_nodes(case["nodes"])}
    others = {"QLinearMatMul", "QLinearMul", "QLinearAveragePool"}
    assert {name for name in OPERATORS if name.startswith("QLinear")} <= tried | others


WIDE = np.arange(-105, 106, 35, np.int8)
"""Zero points that put weights too far apart for one of them all."""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (partly(), "loose (Exp): no QuantizeLinear follows it"),
        (with_constant(around("o = Relu(a)"), "z0", np.array(0, np.uint32)), "uint32"),
        (with_constant(around(**CASES["Gemm"]), "w_z", WIDE), "no 8 bits"),
        (around(**CASES["Gemm"], scales=(0.03, 2e-9, 0.021)), "its sums may leave int32"),
        (between(f"p = QLinearConv(q, {CONV}, b)", constants={"b": np.zeros(3, np.int32)}),
         "3 biases for weights with 5 scales"),
        (between(f"a = QLinearConv<pads=[1, 1, 1, 1]>(q, {CONV}, b); p = Concat<axis=1>(a, q)"),
         "have different scales or zero points"),
        (between("p = Cast<to=1>(q)"), "DequantizeLinear makes real numbers"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, made: onnx.ModelProto, said: str) -> None:
    onnx.save(made, tmp_path / "net.onnx")
    with pytest.raises(ThimbleError, match=re.escape(said)):
        Onnx(str(tmp_path / "net.onnx")).graph()
