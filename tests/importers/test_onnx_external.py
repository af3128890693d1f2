"""Constants in files beside an .onnx file: the same network; one line for what is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, external_data_helper, numpy_helper

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.importers import base
from pipeline.importers.onnx import Onnx
from pipeline.importers.onnx_external import files
from pipeline.runner import own
from tests.importers.onnx_models import N, model, small_network, weights

DATA = "net.onnx.data"


def saved(folder: Path, made: onnx.ModelProto, **options: object) -> Path:
    path = folder / "net.onnx"
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, **{"location": DATA,
                                                                            **options})  # fmt: skip
    return path


def answers(path: Path) -> torch.Tensor:
    network = Onnx(str(path)).float_graph()
    assert network is not None
    frames = torch.rand(4, 8, 8, 3, generator=torch.Generator().manual_seed(0)).double()
    return network.outputs(255 * frames)


@pytest.mark.parametrize("one", [True, False], ids=["one file", "a file for each"])
def test_the_same_network_as_in_one_file(tmp_path: Path, one: bool) -> None:
    whole = tmp_path / "whole.onnx"
    onnx.save(small_network(), whole)
    beside = saved(tmp_path, small_network(), all_tensors_to_one_file=one)
    assert beside.stat().st_size < whole.stat().st_size / 2
    assert torch.equal(answers(beside), answers(whole))
    assert files(whole) == {}
    assert (list(files(beside)) == [DATA]) == one and len(files(beside)) >= 1


def test_in_a_folder_below_and_in_the_attribute_of_a_node(tmp_path: Path) -> None:
    held = numpy_helper.from_array(weights(5, 12), "c")
    made = model([N("Constant", [], ["c"], value=held), N("Gemm", ["x", "c"], ["y"], transB=1)],
                 (1, 12))  # fmt: skip
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "c.bin").write_bytes(b"before" + held.raw_data + b"after")
    attribute = made.graph.node[0].attribute[0].t
    external_data_helper.set_external_data(attribute, "parts/c.bin", 6, len(held.raw_data))
    attribute.ClearField("raw_data")
    (tmp_path / "net.onnx").write_bytes(made.SerializeToString())
    network = Onnx(str(tmp_path / "net.onnx")).float_graph()
    assert network is not None
    x = np.random.default_rng(0).random((3, 12))
    expected = x @ numpy_helper.to_array(held).T
    assert np.allclose(network.outputs(torch.from_numpy(255 * x)).numpy(), expected, atol=1e-5)
    assert list(files(tmp_path / "net.onnx")) == ["parts/c.bin"]


def refused(path: Path) -> str:
    with pytest.raises(ThimbleError) as caught:
        Onnx(str(path)).float_graph()
    text = str(caught.value)
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
def test_what_is_no_file_of_the_model(
    tmp_path: Path, key: str, value: str | bytes, said: str
) -> None:
    """None outside of the model's folder is read."""
    folder = tmp_path / "model"
    (folder / "parts").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"0" * 10_000)
    for name, target in {"out": tmp_path, "out.bin": tmp_path / "secret", "loop": "loop"}.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    path = entry(saved(folder, small_network()), key, value)
    assert said in refused(path)
    assert all(file.is_relative_to(folder) for file in files(path).values())


def test_links_within_the_folder_are_followed(tmp_path: Path) -> None:
    path = saved(tmp_path, small_network())
    expected = answers(path)
    (tmp_path / DATA).rename(tmp_path / "blob")
    (tmp_path / DATA).symlink_to("blob")
    assert torch.equal(answers(path), expected)


def test_a_short_file(tmp_path: Path) -> None:
    path = saved(tmp_path, small_network())
    content = (tmp_path / DATA).read_bytes()
    (tmp_path / DATA).write_bytes(content[:-3])
    assert f"of {DATA}, which ends before: was it copied whole?" in refused(path)
    (tmp_path / DATA).unlink()
    assert f"is in {DATA}, and there is no such file beside the model" in refused(path)


def test_a_thousand_constants_from_one_place_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file may ask for the same bytes again and again."""
    path = saved(tmp_path, small_network())
    monkeypatch.setattr("pipeline.importers.onnx.LARGEST_BYTES", 2000)
    assert "are too large: is it one?" in refused(path)
    assert base.LARGEST_BYTES > 2000


@pytest.mark.parametrize("dims", [None, [2**40], [-1]])
def test_types_and_shapes_are_checked_before_a_file_is_opened(
    tmp_path: Path, dims: list[int] | None
) -> None:
    path = saved(tmp_path, small_network())
    made = onnx.load(path, load_external_data=False)
    held = made.graph.initializer[0]
    if dims:
        del held.dims[:]
        held.dims.extend(dims)
    else:
        held.data_type = TensorProto.STRING
    path.write_bytes(made.SerializeToString())
    refused(path)


def test_the_hash_of_a_model_is_of_its_data_too(tmp_path: Path) -> None:
    """Which is in the key of every stage that reads it."""

    def config() -> dict[str, dict[str, str]]:
        model = {"path": str(path), "_target_": "pipeline.importers.onnx.Onnx"}
        return {"data": {}, "model": model}

    path = saved(tmp_path, small_network())
    found = {own.hashes(config(), tmp_path)["model"]}
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
    program = (
        "import sys; from pipeline.importers import onnx_external; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
