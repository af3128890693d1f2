"""``until=import``: a network as the tool sees it, from each source, before any stage; and what is
refused before any."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import home
from pipeline.errors import Unreadable
from pipeline.importers.seen import seen
from pipeline.runner import workspace
from pipeline.runner.code import Code
from pipeline.runner.job import Job, resolved
from pipeline.runner.schema import composed
from pipeline.runner.screen import Screen
from tests.importers.onnx_models import model, weights
from tests.importers.tflite_writer import Writer

TEXT = "a = Conv(x, w); s = Sigmoid(a); y = Add(a, s)"
NET = """
import torch
class Net(torch.nn.Sequential):
    def __init__(self):
        print("noise")
        super().__init__(torch.nn.Conv2d(2, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 3))
"""


def files(folder: Path) -> None:
    """Write one small network of each format, and a file that is refused."""
    net = Writer()
    x, y = net.tensor((1, 8), 0.1, 1), net.tensor((1, 4), 0.2, 2)
    held = net.constant(np.ones((4, 8), np.int8), 0.1)
    net.operator("FULLY_CONNECTED", [x, held], [y], "FullyConnectedOptions")
    (folder / "whole.tflite").write_bytes(net.content([x], [y]))
    net.operator("CUMSUM", [y], [z := net.tensor((1, 4), 0.1, 0)])
    (folder / "odd.tflite").write_bytes(net.content([x], [z]))
    made = model(TEXT, (1, 2, 8, 8), {"w": weights(4, 2, 3, 3)})
    (folder / "float.onnx").write_bytes(made.SerializeToString())
    (folder / "mine.py").write_text(NET)


def row(*about: Any) -> dict[str, Any]:
    keys = ("layer", "operator", "reads", "shape", "type", "macs", "weights", "weight_type")
    return dict(zip(keys, about, strict=True))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THIMBLE_TYPED", str(tmp_path))
    monkeypatch.setenv("THIMBLE_HOME", str(tmp_path / "home"))
    files(tmp_path)
    return tmp_path


def config(*words: str) -> dict[str, Any]:
    return workspace.params(resolved(composed(*words)))


def test_an_integer_network(here: Path) -> None:
    found = seen(config("model=tflite", "model.path=whole.tflite")["model"])
    first, dense = found.pop("network")
    assert first == row("net/tensor_0", "input", [], [8], "int8", 0, 0, "")
    assert dense == row("fully_connected_0", "Dense", ["net/tensor_0"], [4], "int8", 32, 36, "int8")
    assert found == {"macs": 32, "weights": 36, "quantized": True}


def test_a_float_network(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = seen(config("model=onnx", "model.path=float.onnx")["model"])
    rows = found.pop("network")
    assert found == {"macs": 6 * 6 * 4 * 18, "weights": 76, "quantized": False}
    assert rows[1] == row("a", "Convolution", ["input"], [6, 6, 4], "float", 2592, 76, "float")
    Screen(as_json=False).result({"status": "ok", "run_dir": ".", "network": rows, **found})
    told = capsys.readouterr().out
    assert "Convolution" in told and "6×6×4" in told
    assert f"{len(rows) - 1} operators, 2,592 MACs, 76 weights and biases; float" in told


def test_a_module(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it prints is no part of the result."""
    words = "model=torch", "model.factory=mine:Net", "model.input_shape=[8,8,2]"
    found = seen(config(*words)["model"])
    assert (found["macs"], found["weights"]) == (2592 + 432, 76 + 435)
    assert capsys.readouterr().out == ""


def test_nothing_follows_the_import() -> None:
    assert workspace.stages({"model": {}, "until": home.IMPORT}) == ()
    assert not home.no_later("fetch", home.IMPORT)


def test_a_file_is_refused_before_any_stage_and_read_once(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job.__new__(Job)
    job.config = config("model=tflite", "model.path=odd.tflite", "quantize=int8")
    with pytest.raises(Unreadable, match="CUMSUM: not supported"):
        job._refuse(Code(job.config))
    job.config["model"]["path"] = str(here / "whole.tflite")
    job._refuse(Code(job.config))
    monkeypatch.setattr("pipeline.importers.seen.seen", lambda _: pytest.fail("read twice"))
    job._refuse(Code(job.config))
