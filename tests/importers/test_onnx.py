"""Float ONNX: every operator gives what onnxruntime gives; constants in files beside the model give
the same network, and what is not there is one line."""

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, external_data_helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.importers import base
from pipeline.importers.float_nodes import Weighted
from pipeline.importers.float_whole import Normalized
from pipeline.importers.onnx import OPERATORS, Onnx
from pipeline.importers.onnx_external import files
from pipeline.importers.onnx_file import NEWEST_OPSET
from pipeline.runner import own
from tests.importers.onnx_models import (
    IMAGE,
    N,
    imported,
    model,
    models,
    number,
    one,
    parsed,
    small_network,
    weights,
)
from tests.importers.support import answers, check_integers, check_outputs, example, first, ours
from tests.programs import refusal, said, written

MODELS = models()
UNIT = (0.0, 255.0)
"""So that the raw values are what the network takes."""


OLD = [name for name, made in MODELS.items() if made.opset_import[0].version < 7]
"""onnxruntime asks for newer ones."""


@pytest.mark.parametrize("name", [name for name in MODELS if name not in OLD])
def test_operator(name: str) -> None:
    made = MODELS[name]
    shape = [d.dim_value or 1 for d in made.graph.input[0].type.tensor_type.shape.dim]
    x = example(tuple(shape[1:]), 12, 1)
    expected = torch.from_numpy(first(answers(made.SerializeToString(), x.numpy())))
    if name == "Transpose first":  # channels last in the source, too
        x, expected = x.permute(0, 3, 1, 2), expected.permute(0, 3, 1, 2)
    small = check_outputs(imported("net", parsed(made), UNIT), x, expected)
    check_integers(small, x)
    assert "in parts" not in name or Normalized in map(type, small.nodes)


@pytest.mark.parametrize("old", ["Clip old", "Pad old", "Add old"])
def test_attributes_of_old_opsets(old: str) -> None:
    """Files of 2017 don't say their types."""
    x = torch.randn(3, *IMAGE[1:], generator=torch.Generator().manual_seed(0))
    constants = map(numpy_helper.to_array, MODELS[old].graph.initializer)
    added = next((x + torch.tensor(each)[:, None, None] for each in constants), x)
    padded = torch.nn.functional.pad(x, (0, 2, 1, 0, 0, 1))
    expected = {"Clip old": x.clamp(0, 6), "Pad old": padded, "Add old": added}[old]
    for given in MODELS[old].graph.node[0].attribute:
        given.ClearField("type")
    assert torch.equal(imported("net", parsed(MODELS[old]), UNIT).evaluate(ours(x)), ours(expected))


def test_every_operator_is_tried() -> None:
    tried = {node.op_type for made in MODELS.values() for node in made.graph.node}
    quantized = {name for name in OPERATORS if name.startswith("Q") or "Quantize" in name}
    dynamic = {"ConvInteger", "MatMulInteger", "LSTM", "GRU"}  # cells in test_recurrent
    assert OPERATORS.keys() - tried <= quantized | dynamic | {"DequantizeLinear"}


def test_a_dynamically_quantized_file_keeps_its_weights_integers(tmp_path: Path) -> None:
    onnx.save(small_network(), tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "net.onnx", reduce_range=True)
    network = Onnx(str(tmp_path / "net.onnx"), input_range=(-1.0, 1.0)).float_graph()
    assert network is not None
    weighted = [node for node in network.nodes if isinstance(node, Weighted)]
    assert len(weighted) == 5 and all(node.steps is not None for node in weighted)
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 3))
    expected = answers(tmp_path / "net.onnx", first((pixels / 127.5 - 1).astype(np.float32)))
    found = network.evaluate(torch.tensor(pixels, dtype=torch.float64)).numpy()
    assert np.abs(found - expected).max() < 0.02 * np.ptp(expected)  # its activations are 8 bits


def test_float16() -> None:
    made, half = small_network(), small_network()
    half.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    for each in half.graph.initializer:
        if each.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(each).astype(np.float16)
            each.CopyFrom(numpy_helper.from_array(values, each.name))
    x = ours(example((3, 8, 8)))
    both = [imported("net", parsed(each), (-1.0, 1.0)).evaluate(x) for each in (made, half)]
    assert 0 < (both[0] - both[1]).abs().max() < 1e-3 * both[0].abs().max()


def refused(made: onnx.ModelProto | bytes) -> str:
    content = made if isinstance(made, bytes) else made.SerializeToString()
    text = refusal(lambda: imported("net", parsed(content), UNIT))
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b"\x00\x01rubbish", "not an ONNX file"),
        (b"", "no operators"),
        (one("Div", IMAGE, np.zeros((), np.float32)), "divides by zero"),
        (one("Conv", IMAGE, weights(4, 3, 1, 1)), "3"),
        (model("y = Abs(x)", (1, 3, "h", 8)), "axis 2 open (h): export it with a fixed size, or"),
        (model("t = Transpose<perm=[1, 0, 2, 3]>(x); y = ReduceMean<axes=[2]>(t)", IMAGE, opset=13),
         "only where axis 0, the batch, is 1"),
        (one("BatchNormalization", IMAGE, *(np.ones(n, np.float32) for n in (4, 3, 4, 4))),
         "one number for each channel"),
        (model("s = Mul(c); y = Add(x, s)", (1, 3), {"c": number(0)}),
         "s (Mul): cannot be computed of 1 constants, float32[]"),
        (one("Abs", IMAGE, opset=NEWEST_OPSET + 1),
         f"it is of opset {NEWEST_OPSET + 1}, whose operators may mean"),
        (model("y = Abs(x)", (8, 3)), "batch of 8"),
        (one("Add", IMAGE, weights(4), opset=6, axis=-(2**40)), "0 or more is needed"),
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
    path.write_bytes(model("y = Abs(x)", ("n", 3, "h", "w")).SerializeToString())
    sized = Onnx(str(path), sizes=(5, 6)).float_graph()
    assert sized is not None and sized.shapes[sized.output] == (5, 6, 3)
    with pytest.raises(ThimbleError, match=r"model.sizes=\[5\]: it leaves 2 axes open"):
        Onnx(str(path), sizes=(5,)).float_graph()


DATA = "net.onnx.data"


def saved(folder: Path, made: onnx.ModelProto, **options: object) -> Path:
    path = folder / "net.onnx"
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, **{"location": DATA,
                                                                            **options})  # fmt: skip
    return path


def outputs(path: Path) -> torch.Tensor:
    network = Onnx(str(path)).float_graph()
    assert network is not None
    frames = torch.rand(4, 8, 8, 3, generator=torch.Generator().manual_seed(0)).double()
    return network.evaluate(255 * frames)


@pytest.mark.parametrize("one", [True, False], ids=["one file", "a file for each"])
def test_the_same_network_as_in_one_file(tmp_path: Path, one: bool) -> None:
    whole = tmp_path / "whole.onnx"
    onnx.save(small_network(), whole)
    beside = saved(tmp_path, small_network(), all_tensors_to_one_file=one)
    assert beside.stat().st_size < whole.stat().st_size / 2
    assert torch.equal(outputs(beside), outputs(whole))
    assert files(whole) == {}
    assert (list(files(beside)) == [DATA]) == one and len(files(beside)) >= 1
    for name in list(files(beside)):  # links within the folder are followed
        (tmp_path / name).rename(tmp_path / f"{name}.blob")
        (tmp_path / name).symlink_to(f"{name}.blob")
    assert torch.equal(outputs(beside), outputs(whole))


def test_in_a_folder_below_and_in_the_attribute_of_a_node(tmp_path: Path) -> None:
    held = numpy_helper.from_array(weights(5, 12), "c")
    made = model([N("Constant", [], ["c"], value=held), N("Gemm", ["x", "c"], ["y"], transB=1)],
                 (1, 12))  # fmt: skip
    written(tmp_path, {"parts/c.bin": b"before" + held.raw_data + b"after"})
    attribute = made.graph.node[0].attribute[0].t
    external_data_helper.set_external_data(attribute, "parts/c.bin", 6, len(held.raw_data))
    attribute.ClearField("raw_data")
    (tmp_path / "net.onnx").write_bytes(made.SerializeToString())
    network = Onnx(str(tmp_path / "net.onnx")).float_graph()
    assert network is not None
    x = np.random.default_rng(0).random((3, 12))
    expected = x @ numpy_helper.to_array(held).T
    assert np.allclose(network.evaluate(torch.from_numpy(255 * x)).numpy(), expected, atol=1e-5)
    assert list(files(tmp_path / "net.onnx")) == ["parts/c.bin"]


def refused_file(path: Path) -> str:
    text = refusal(Onnx(str(path)).float_graph)
    assert text.startswith(str(path)) and "\n" not in text and len(text) < 500
    return text


def entry(path: Path, key: str, value: str | bytes) -> Path:
    """The file with another entry in its first constant."""
    made = onnx.load(path, load_external_data=False)
    held = made.graph.initializer[0].external_data
    found = next((each for each in held if each.key == key), None) or held.add(key=key)
    found.value = value if isinstance(value, str) else "@" * len(value)
    content = made.SerializeToString()
    if isinstance(value, bytes):  # what is not UTF-8 is not taken from Python
        assert content.count(b"@" * len(value)) == 1
        content = content.replace(b"@" * len(value), value)
    path.write_bytes(content)
    return path


OUTSIDE = "outside of the model's folder: only files in it are read"
MISSING = "there is no such file beside the model"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        *(("location", place, OUTSIDE) for place in
          ("../secret", "/etc/passwd", "parts/../../secret", "out/secret", "out.bin", "")),
        *(("location", place, MISSING) for place in
          ("none", "x" * 5000, "parts", "pipe", "loop", "a\0b", b"\xff\xfe\xfd\xff")),
        ("length", "9" * 18, "999,999,999,999,999,999 bytes in net.onnx.data for [8, 3, 3, 3]"),
        ("length", "9" * 5000, "not a number of bytes"),
        ("length", "-1", "its length in net.onnx.data is '-1', not a number of bytes"),
        ("length", "4", "4 bytes in net.onnx.data for [8, 3, 3, 3] of float32, which are 864"),
        ("offset", "9" * 18, "was it copied whole?"),
        ("offset", "1e3", "not a number of bytes"),
        ("offset", b"\xff\xfe\xfd\xff", "not a number of bytes"),
    ],
)  # fmt: skip
def test_no_file_of_the_model(tmp_path: Path, key: str, value: str | bytes, said: str) -> None:
    """None outside of the model's folder is read."""
    folder = tmp_path / "model"
    (folder / "parts").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"0" * 10_000)
    for name, target in {"out": tmp_path, "out.bin": tmp_path / "secret", "loop": "loop"}.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    path = entry(saved(folder, small_network()), key, value)
    assert said in refused_file(path)
    assert all(file.is_relative_to(folder) for file in files(path).values())


def test_a_short_file(tmp_path: Path) -> None:
    path = saved(tmp_path, small_network())
    content = (tmp_path / DATA).read_bytes()
    (tmp_path / DATA).write_bytes(content[:-3])
    assert f"of {DATA}, which ends before: was it copied whole?" in refused_file(path)
    (tmp_path / DATA).unlink()
    assert f"is in {DATA}, and there is no such file beside the model" in refused_file(path)


def test_a_thousand_constants_from_one_place_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file may ask for the same bytes again and again."""
    path = saved(tmp_path, small_network())
    monkeypatch.setattr("pipeline.importers.onnx.LARGEST_BYTES", 2000)
    assert "are too large: is it one?" in refused_file(path)
    assert base.LARGEST_BYTES > 2000


def test_the_hash_of_a_model_is_of_its_data_too(tmp_path: Path) -> None:
    """Check the hash in the key of every stage that reads it; the model's place is not in it."""

    def config() -> dict[str, dict[str, str]]:
        return {"data": {}, "model": {"path": str(path), "_target_": own.ONNX}}

    (tmp_path / "elsewhere").mkdir()
    path = saved(tmp_path / "elsewhere", small_network())
    found = {own.hashes(config(), tmp_path)["model"]}
    path = saved(tmp_path, small_network())
    found.add(own.hashes(config(), tmp_path)["model"])
    assert len(found) == 1
    content = bytearray((tmp_path / DATA).read_bytes())
    content[5] ^= 1
    (tmp_path / DATA).write_bytes(content)
    found.add(own.hashes(config(), tmp_path)["model"])
    (tmp_path / DATA).unlink()
    found.add(own.hashes(config(), tmp_path)["model"])
    path.write_bytes(b"rubbish")  # the stage says so
    found.add(own.hashes(config(), tmp_path)["model"])
    assert len(found) == 4


def test_the_files_beside_a_model_are_found_without_torch() -> None:
    program = "import sys, pipeline.importers.onnx_external; print('torch' in sys.modules)"
    assert said([sys.executable, "-c", program], ROOT) == "False\n"
