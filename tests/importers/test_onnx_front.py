"""Quantized ONNX that normalizes its input in real numbers first: it takes the data's values."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from pipeline.errors import ThimbleError
from pipeline.frames import stored
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.lookup import Lookup
from pipeline.importers.onnx import Onnx
from tests.importers.onnx_models import Array, N, Nodes, model, number, parsed_nodes
from tests.importers.support import first, last, units_off

PLANES, LAST = (1, 3, 6, 5), (1, 6, 5, 3)
"""Shapes of an image, channels first and last."""
MEAN = np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1)
UINT8 = TensorProto.UINT8
RAW = np.random.default_rng(0).integers(0, 256, (30, 6, 5, 3)).astype(np.uint8)


def normalized(
    before: Nodes,
    held: dict[str, Array],
    shape: tuple[int, ...] = PLANES,
    kind: int = TensorProto.FLOAT,
    quantization: tuple[float, int] = (0.0187, -14),
) -> onnx.ModelProto:
    """``before``, from "x" to "n", then a padded convolution on integers."""
    scale, zero = quantization
    constants = {
        "s": number(scale), "z": np.array(zero, np.int8), "t": number(3 * scale),
        "o": np.array(-3, np.int8),
        "w": np.random.default_rng(0).integers(-63, 64, (4, 3, 3, 3)).astype(np.int8),
        "ws": np.linspace(0.004, 0.008, 4).astype(np.float32), "wz": np.zeros(4, np.int8), **held,
    }  # fmt: skip
    after = ("q = QuantizeLinear(n, s, z); "
             "p = QLinearConv<pads=[1, 1, 1, 1]>(q, s, z, w, ws, wz, t, o); "
             "y = DequantizeLinear(p, t, o)")  # fmt: skip
    nodes = [*parsed_nodes(before), after]
    return model(nodes, shape, constants, kinds=(kind, TensorProto.FLOAT))


FLAT = {"m": MEAN, "d": DEVIATION}
TRANSPOSE = "a = Transpose<perm=[0, 3, 1, 2]>(x)"
CASES: dict[str, dict[str, Any]] = {
    "Div by a number": {"before": "n = Div(x, c)", "held": {"c": number(255)},
        "limits": (0.0, 255.0), "quantization": (0.00391, -128)},
    "Div by a number that changes nothing": {"before": "n = Div(x, c)", "held": {"c": number(255)},
        "limits": (0.0, 255.0), "quantization": (1 / 255, -128), "kinds": [Conv2d]},
    "from a number": {"before": "n = Sub(c, x)", "held": {"c": number(1)},
        "kinds": [Lookup, Conv2d]},
    "Sub and Div of channels": {"before": "a = Sub(x, m); n = Div(a, d)", "held": FLAT,
        "kinds": [Conv2d, Conv2d]},
    "Add and Mul of channels, raw": {"before": "b = Mul(x, c); a = Sub(b, m); n = Div(a, d)",
        "held": FLAT | {"c": number(1 / 255)}, "limits": (0.0, 255.0), "kinds": [Conv2d, Conv2d]},
    "BatchNormalization": {"before": "n = BatchNormalization(x, g, b, e, v)", "held":
        {"g": np.array([1, 2, -1], np.float32), "b": np.array([0, 1, 1], np.float32),
        "e": MEAN.ravel(), "v": DEVIATION.ravel()}, "kinds": [Conv2d, Conv2d]},
    "channels last": {"before": [TRANSPOSE, "b = Sub(a, m)", "n = Div(b, d)"], "held": FLAT,
        "shape": LAST, "kinds": [Conv2d, Conv2d]},
    "uint8": {"before": "a = Cast<to=1>(x); n = Div(a, c)", "held": {"c": number(255)},
        "kind": UINT8, "quantization": (0.00391, -128)},
    "uint8, channels last": {"before":
        "c = Cast<to=1>(x); a = Transpose<perm=[0, 3, 1, 2]>(c); e = Mul(a, f); "
        "b = Sub(e, m); n = Div(b, d)", "held": FLAT | {"f": number(1 / 255)}, "shape": LAST,
        "kind": UINT8},
    "int8": {"before": "a = Cast<to=1>(x); n = Mul(a, c)", "held": {"c": number(0.01)},
        "kind": TensorProto.INT8},
}  # fmt: skip
CHECKS = ("limits", "kinds")
"""Keys of a case that are not the model's: its input range, and the operators that it becomes."""


def case_model(name: str) -> onnx.ModelProto:
    return normalized(**{key: value for key, value in CASES[name].items() if key not in CHECKS})


@pytest.mark.parametrize("name", CASES)
def test_the_first_integers_are_onnxruntimes(tmp_path: Path, name: str) -> None:
    """From the bytes of the data on; padding is the real value 0 after the normalization."""
    case, path = CASES[name], tmp_path / "net.onnx"
    limits = case.get("limits", (0.0, 1.0))
    onnx.save(case_model(name), path)
    graph = Onnx(str(path), input_range=limits).graph()
    takes = graph.tensors[graph.input]
    assert takes.raw is None
    if "kinds" in case:
        assert [type(op) for op in graph.operators] == case["kinds"]
    given = fed(limits, case.get("kind", TensorProto.FLOAT), case.get("shape", PLANES))
    image, inputs = given if case.get("shape") == LAST else last(given), stored(RAW, takes)
    np.testing.assert_allclose(takes.real(inputs), image, atol=1e-6)
    off = units_off(graph, path, given, inputs)
    assert np.abs(off).max() <= 1 and (off != 0).mean() < 0.01
    assert len(np.unique(graph.evaluate(inputs.astype(np.int64)))) > 40


def fed(limits: tuple[float, float], kind: int, shape: tuple[int, ...]) -> Array:
    """Turn the data's values into what onnxruntime takes."""
    low, high = limits
    image = RAW if shape == LAST else first(RAW)
    if kind == TensorProto.INT8:
        return (image.astype(int) - 128).astype(np.int8)
    return image if kind == UINT8 else (low + image * (high - low) / 255).astype(np.float32)


@pytest.mark.parametrize("name", ["Div by a number", "Add and Mul of channels, raw", "an image"])
def test_what_is_refused_is_one_line(tmp_path: Path, name: str) -> None:
    """The network takes 0…255 and scales them, the data are said to be 0…1; other arithmetic."""
    if name in CASES:
        made, said = case_model(name), r"input_range=\[0.0, 1.0\] leaves \d+ different"
    else:
        gain = N("Mul", ["x", "c"], ["a"], name="gain")
        held = {"c": first(RAW[:1]).astype(np.float32), "m": MEAN}
        made = normalized([gain, "n = Sub(a, m)"], held)
        said = "no QuantizeLinear follows it"
    onnx.save(made, tmp_path / "net.onnx")
    with pytest.raises(ThimbleError, match=said):
        Onnx(str(tmp_path / "net.onnx")).graph()
