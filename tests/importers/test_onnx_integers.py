"""Models in onnxruntime's QOperator format, whose operators take integers: beside onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from pipeline.errors import ThimbleError
from pipeline.importers.onnx import OPERATORS, Onnx
from tests.importers.onnx_models import IMAGE, Array, N, ints, model, number
from tests.importers.onnx_reference import off_at_random

HERE = ("s0", "z0")
"""Scale and zero point of the input."""
OUT = ("s1", "z1")
"""Of another activation."""
CONV = ["s0", "z0", "w", "ws", "wz", *OUT]
"""What follows the input of QLinearConv, biases left out."""


def between(
    nodes: list[onnx.NodeProto],
    shape: tuple[int, ...] = IMAGE,
    unsigned: bool = True,
    constants: dict[str, Array] | None = None,
    scales: tuple[float, float] = (0.03, 0.05),
    zeros: tuple[int, int] = (-9, 4),
    ends: tuple[str, str] = OUT,
) -> onnx.ModelProto:
    """``nodes`` on integers, from "q" to "p", the latter with the quantization ``ends``; weights
    "w" and biases "b" of a convolution, and numbers of the activations' type where a constant is a
    Python int, are there to read."""
    kind = np.uint8 if unsigned else np.int8
    more = 128 if unsigned else 0
    channels = shape[1]
    held: dict[str, Array] = {
        "s0": number(scales[0]), "z0": np.array(zeros[0] + more, kind),
        "s1": number(scales[1]), "z1": np.array(zeros[1] + more, kind),
        "w": np.random.default_rng(0).integers(-127, 128, (5, channels, 3, 3)).astype(np.int8),
        "ws": np.linspace(0.002, 0.004, 5).astype(np.float32), "wz": np.zeros(5, np.int8),
        "b": np.arange(-800, 800, 320).astype(np.int32),
    }  # fmt: skip
    for name, value in (constants or {}).items():
        held[name] = np.array(value + more, kind) if isinstance(value, int) else value
    read = {name for node in nodes for name in node.input} | {*HERE, *ends}
    quantize = N("QuantizeLinear", ["x", *HERE], ["q"])
    dequantize = N("DequantizeLinear", ["p", *ends], ["y"])
    held = {name: value for name, value in held.items() if name in read}
    return model([quantize, *nodes, dequantize], shape, held)


M = "com.microsoft"
SLICED = {"from": ints(1), "to": ints(3), "axis": ints(1)}
TWO = {"w": np.random.default_rng(0).integers(-127, 128, (5, 2, 3, 3)).astype(np.int8)}
"""Weights for two channels."""
PADS = ints(0, 0, 1, 2, 0, 0, 0, 1)
CASES: dict[str, dict[str, Any]] = {
    "Slice before QLinearConv": {
        "nodes": [N("Slice", ["q", "from", "to", "axis"], ["a"]),
                  N("QLinearConv", ["a", *CONV, "b"], ["p"])], "constants": SLICED | TWO},
    "Split before QLinearConv": {
        "nodes": [N("Split", ["q"], ["a", "r"], axis=1, num_outputs=2),
                  N("QLinearConv", ["r", *CONV, "b"], ["p"])], "constants": TWO},
    "Transpose and Slice before QLinearConv": {
        "nodes": [N("Slice", ["q", "from", "to", "axis"], ["a"]),
                  N("Transpose", ["a"], ["t"], perm=[0, 1, 3, 2]),
                  N("QLinearConv", ["t", *CONV, "b"], ["p"])], "constants": SLICED | TWO},
    "MaxPool before QLinearConv": {
        "nodes": [N("MaxPool", ["q"], ["a"], kernel_shape=[2, 2]),
                  N("QLinearConv", ["a", *CONV, "b"], ["p"])]},
    "Resize before QLinearConv": {
        "nodes": [N("Resize", ["q", "", "f"], ["a"], mode="nearest"),
                  N("QLinearConv", ["a", *CONV, "b"], ["p"])],
        "constants": {"f": np.array([1, 1, 2, 2], np.float32)}},
    "Pad before QLinearConv": {
        "nodes": [N("Pad", ["q", "pads", "z0"], ["a"]),
                  N("QLinearConv", ["a", *CONV, "b"], ["p"])], "constants": {"pads": PADS}},
    "Pad of channels": {"nodes": [N("Pad", ["q", "pads", "z0"], ["p"])], "ends": HERE,
                        "constants": {"pads": ints(0, 1, 0, 0, 0, 2, 0, 0)}},
    "Pad by a default": {"nodes": [N("Pad", ["q", "pads"], ["p"])], "ends": HERE,
                         "constants": {"pads": PADS}, "zeros": (0, 0), "unsigned": False},
    "Concat": {
        "nodes": [N("QLinearConv", ["q", *CONV, "b"], ["a"]), N("MaxPool", ["a"], ["m"],
                                                               kernel_shape=[1, 1]),
                  N("Concat", ["a", "m"], ["p"], axis=1)]},
    "QLinearConcat": {
        "nodes": [N("QLinearConv", ["q", *CONV, "b"], ["a"], pads=[1, 1, 1, 1]),
                  N("QLinearConcat", [*OUT, "q", *HERE, "a", *OUT], ["p"], axis=1, domain=M)]},
    "Clip": {"nodes": [N("Clip", ["q", "low", "high"], ["p"])], "ends": HERE,
             "constants": {"low": -40, "high": 55}},
    "Clip from below": {"nodes": [N("Clip", ["q", "low"], ["p"])], "ends": HERE,
                        "constants": {"low": 10}},
    "Clip after QLinearConv": {
        "nodes": [N("QLinearConv", ["q", *CONV, "b"], ["a"]),
                  N("Clip", ["a", "low", "high"], ["p"])], "constants": {"low": 4, "high": 90}},
    "Relu": {"nodes": [N("Relu", ["q"], ["p"])], "ends": HERE, "unsigned": False},
    "QLinearSoftmax": {
        "nodes": [N("QLinearSoftmax", ["q", *HERE, *OUT], ["p"], axis=1, opset=13, domain=M)],
        "shape": (1, 10), "scales": (0.04, 1 / 256), "zeros": (3, -128)},
    "QLinearSoftmax of channels": {
        "nodes": [N("QLinearSoftmax", ["q", *HERE, *OUT], ["p"], axis=1, opset=13, domain=M)],
        "scales": (0.04, 1 / 256), "zeros": (3, -128)},
    "QLinearSoftmax of old": {
        "nodes": [N("QLinearSoftmax", ["q", *HERE, *OUT], ["p"], axis=1, opset=11, domain=M)],
        "shape": (1, 10), "scales": (0.04, 1 / 256), "zeros": (3, -128)},
    "QLinearAdd": {
        "nodes": [N("QLinearConv", ["q", *CONV, "b"], ["a"]),
                  N("QLinearAdd", ["a", *OUT, "a", *OUT, *HERE], ["p"], domain=M)],
        "ends": HERE},
    "QLinearGlobalAveragePool": {
        "nodes": [N("QLinearGlobalAveragePool", ["q", *HERE, *OUT], ["p"], domain=M)],
        "scales": (0.03, 0.004)},
    "QLinearLeakyRelu": {
        "nodes": [N("QLinearLeakyRelu", ["q", *HERE, *OUT], ["p"], alpha=0.1, domain=M)]},
    "QLinearSigmoid": {
        "nodes": [N("QLinearSigmoid", ["q", *HERE, *OUT], ["p"], domain=M)],
        "scales": (0.03, 1 / 256), "zeros": (0, -128)},
}  # fmt: skip

LOOSE = {"QLinearConv": 0.01, "Leaky": 0.01, "Softmax": 0.1}
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
    tried = {node.op_type for case in CASES.values() for node in case["nodes"]}
    others = {"QLinearMatMul", "QLinearMul", "QLinearAveragePool"}
    assert {name for name in OPERATORS if name.startswith("QLinear")} <= tried | others


CONVOLVED = N("QLinearConv", ["q", *CONV, "b"], ["a"], pads=[1, 1, 1, 1])


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"nodes": [N("Pad", ["q", "pads", "v"], ["p"])], "constants": {"pads": PADS, "v": 7},
          "ends": HERE}, "constant 135: only the zero point 119 (it stands for 0) is supported"),
        ({"nodes": [N("QLinearConv", ["q", *CONV, "b"], ["p"])],
          "constants": {"b": np.zeros(3, np.int32)}}, "3 biases for weights with 5 scales"),
        ({"nodes": [CONVOLVED, N("Concat", ["a", "q"], ["p"], axis=1)]},
         "have different scales or zero points"),
        ({"nodes": [N("Cast", ["q"], ["p"], to=1)]}, "DequantizeLinear makes real numbers"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, case: dict[str, Any], said: str) -> None:
    onnx.save(between(**case), tmp_path / "net.onnx")
    with pytest.raises(ThimbleError) as caught:
        Onnx(str(tmp_path / "net.onnx")).graph()
    assert said in str(caught.value)
