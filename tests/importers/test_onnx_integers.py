"""Models in onnxruntime's QOperator format, whose operators take integers: beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from pipeline.errors import ThimbleError
from pipeline.importers.onnx import OPERATORS, Onnx
from tests.importers.onnx_models import IMAGE, Array, ints, model, number, parsed_nodes
from tests.importers.onnx_reference import off_at_random

HERE = "s0, z0"
"""Scale and zero point of the input."""
OUT = "s1, z1"
"""Of another activation."""
CONV = f"{HERE}, w, ws, wz, {OUT}"
"""What follows the input of QLinearConv, biases left out."""


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
CASES: dict[str, dict[str, Any]] = {
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

LOOSE = {"QLinearConv": 0.01, "Leaky": 0.01, "QLinearAdd": 0.02, "Softmax": 0.1}
"""Shares that may be one unit off: QLinearConv and the kernels of tables compute in float32;
integer softmax here is TensorFlow Lite's."""


@pytest.mark.parametrize("unsigned", [False, True], ids=["int8", "uint8"])
@pytest.mark.parametrize("name", CASES)
def test_operators_on_integers(tmp_path: Path, name: str, unsigned: bool) -> None:
    case = CASES[name]
    if case.get("unsigned", unsigned) != unsigned:
        pytest.skip("onnxruntime has it of one type only")
    off = off_at_random(between(**{"unsigned": unsigned, **case}), tmp_path)
    share = max([0.001, *(allowed for part, allowed in LOOSE.items() if part in str(case))])
    assert (off != 0).mean() < share


def test_every_operator_of_integers_is_tried() -> None:
    tried = {node.op_type for case in CASES.values() for node in parsed_nodes(case["nodes"])}
    others = {"QLinearMatMul", "QLinearMul", "QLinearAveragePool"}
    assert {name for name in OPERATORS if name.startswith("QLinear")} <= tried | others


CONVOLVED = f"a = QLinearConv<pads=[1, 1, 1, 1]>(q, {CONV}, b)"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"nodes": "p = Pad(q, pads, v)", "constants": {"pads": PADS, "v": 7}, "ends": HERE},
         "constant 135: only the zero point 119 (it stands for 0) is supported"),
        ({"nodes": f"p = QLinearConv(q, {CONV}, b)", "constants": {"b": np.zeros(3, np.int32)}},
         "3 biases for weights with 5 scales"),
        ({"nodes": f"{CONVOLVED}; p = Concat<axis=1>(a, q)"},
         "have different scales or zero points"),
        ({"nodes": "p = Cast<to=1>(q)"}, "DequantizeLinear makes real numbers"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, case: dict[str, Any], said: str) -> None:
    onnx.save(between(**case), tmp_path / "net.onnx")
    with pytest.raises(ThimbleError) as caught:
        Onnx(str(tmp_path / "net.onnx")).graph()
    assert said in str(caught.value)
