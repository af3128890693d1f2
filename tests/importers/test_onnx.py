"""Float ONNX: every operator gives what onnxruntime gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from pipeline.errors import ThimbleError
from pipeline.importers.onnx import OPERATORS, Onnx
from pipeline.importers.onnx_file import NEWEST_OPSET
from tests.importers.onnx_models import IMAGE, imported, model, models, number, one, parsed, weights
from tests.importers.support import check_integers, check_outputs, example, ours

MODELS = models()
UNIT = (0.0, 255.0)
"""So that the raw values are what the network takes."""


def reference(made: onnx.ModelProto, x: torch.Tensor) -> torch.Tensor:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return torch.cat([torch.from_numpy(session.run(None, {"x": f[None].numpy()})[0]) for f in x])


OLD = [name for name, made in MODELS.items() if made.opset_import[0].version < 7]
"""onnxruntime asks for newer ones."""


@pytest.mark.parametrize("name", [name for name in MODELS if name not in OLD])
def test_operator(name: str) -> None:
    made = MODELS[name]
    shape = [d.dim_value or 1 for d in made.graph.input[0].type.tensor_type.shape.dim]
    x = example(tuple(shape[1:]), 12, 1)
    expected = reference(made, x)
    if name == "Transpose first":  # channels last in the source, too
        x, expected = x.permute(0, 3, 1, 2), expected.permute(0, 3, 1, 2)
    check_integers(check_outputs(imported("net", parsed(made), UNIT), x, expected), x)


@pytest.mark.parametrize(
    ("old", "new"), [("Clip old", "ReLU6"), ("Pad old", "pads")], ids=["Clip", "Pad"]
)
def test_attributes_of_old_opsets(old: str, new: str) -> None:
    network = imported("net", parsed(MODELS[old]), UNIT)
    x = torch.randn(3, *IMAGE[1:], generator=torch.Generator().manual_seed(0))
    padded = torch.nn.functional.pad(x, (0, 2, 1, 0, 0, 1))
    expected = x.clamp(0, 6) if new == "ReLU6" else padded
    assert torch.equal(network.outputs(ours(x)), ours(expected))


def test_every_operator_is_tried() -> None:
    tried = {node.op_type for made in MODELS.values() for node in made.graph.node}
    quantized = {name for name in OPERATORS if name.startswith("Q") or "Quantize" in name}
    assert OPERATORS.keys() - tried <= quantized | {"DequantizeLinear"}


def refused(made: onnx.ModelProto | bytes) -> str:
    content = made if isinstance(made, bytes) else made.SerializeToString()
    with pytest.raises(ThimbleError) as caught:
        imported("net", parsed(content), UNIT)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_an_unknown_operator_says_where_it_is_and_what_there_is() -> None:
    made = one("Conv", IMAGE, weights(4, 4, 1, 1))
    made.graph.node[0].output[0] = "a"
    made.graph.node.add(op_type="CumSum", name="sums", input=["a"], output=["y"])
    text = refused(made)
    assert text.endswith(
        "sums (CumSum): the operator CumSum is not supported; docs/importing.md lists what is"
    )
    made.graph.node[1].op_type = "ArgMax"
    assert "ArgMax is not supported; end the network with what it is taken of" in refused(made)


MIXED = "p = Reshape(x, a); q = Transpose<perm=[0, 3, 5, 1, 2, 4]>(p); y = Reshape(q, b)"
"""Blocks of rows and columns to channels: four axes change places."""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b"\x00\x01rubbish", "not an ONNX file"),
        (b"", "no operators"),
        (model(MIXED, IMAGE, {"a": np.array([1, 4, 3, 3, 4, 2]), "b": np.array([1, 24, 3, 4])}),
         "moves elements"),
        (one("Div", IMAGE, np.zeros((), np.float32)), "divides by zero"),
        (one("Conv", IMAGE, weights(4, 3, 1, 1)), "3"),
        (one("Pad", IMAGE, opset=13, mode="reflect"), "only zeros"),
        (model("y = Abs(x)", (1, 3, "h", 8)), "axis 2 open"),
        (model("t = Transpose<perm=[1, 0, 2, 3]>(x); y = ReduceMean<axes=[2]>(t)", IMAGE, opset=13),
         "only where axis 0, the batch, is 1"),
        (one("BatchNormalization", IMAGE, *(np.ones(n, np.float32) for n in (4, 3, 4, 4))),
         "one number for each channel"),
        (model("s = Mul(c); y = Add(x, s)", (1, 3), {"c": number(0)}),
         "s (Mul): cannot be computed of 1 constants, float32[]"),
        (one("Abs", IMAGE, opset=NEWEST_OPSET + 1),
         f"it is of opset {NEWEST_OPSET + 1}, whose operators may mean"),
        (model("y = Abs(x)", (8, 3)), "batch of 8"),
        (model("y = Add(x, z)", (1, 3)), "nothing before it makes"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)  # fmt: skip
def test_what_is_refused_is_one_line(made: onnx.ModelProto | bytes, said: str) -> None:
    assert said in refused(made)


def test_a_missing_file_and_a_float_one(tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match="no such file"):
        Onnx(str(tmp_path / "none.onnx")).float_graph()
    path = tmp_path / "net.onnx"
    path.write_bytes(one("Gemm", (1, 12), weights(12, 5)).SerializeToString())
    network = Onnx(str(path)).float_graph()
    assert network is not None and network.shapes[network.input] == (12,)
    with pytest.raises(ThimbleError, match="float network"):
        Onnx(str(path)).graph()
