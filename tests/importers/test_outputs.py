"""``model.outputs``: where a network ends, among several outputs or before an unknown operator; and
``until=import``: a network as the tool sees it, from each source, and what is refused before any
stage."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from pipeline import home
from pipeline.errors import ThimbleError, Unreadable
from pipeline.importers.onnx import Onnx
from pipeline.importers.seen import seen
from pipeline.importers.torch_export import exported
from pipeline.importers.torch_model import TorchModel
from pipeline.runner import workspace
from pipeline.runner.code import Code
from pipeline.runner.job import Job, resolved
from pipeline.runner.schema import composed
from pipeline.runner.screen import Screen
from tests.importers.onnx_models import IMAGE, model, weights
from tests.importers.tflite_reference import imported
from tests.importers.tflite_writer import Writer
from tests.importers.torch_modules import Of


def two_relus_and_a_label() -> bytes:
    """x -> a -> b, both outputs; the label of b is the third."""
    net = Writer()
    x, a, b, label = (net.tensor((1, 4), 0.1, 0, name=f"net/{n}") for n in range(4))
    net.operator("RELU", [x], [a])
    net.operator("RELU6", [a], [b])
    net.operator("TOPK_V2", [b], [label])
    return net.content([x], [a, b, label])


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ((), "TOPK_V2: not supported; .* model.outputs=.net/2. ends it before that"),
        (("net/3",), "TOPK_V2: not supported; .* model.outputs=.net/2. ends it before that"),
        (("net/9",), "there is no such tensor; there are net/"),
    ],
)
def test_what_is_refused(outputs: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=said):
        imported(two_relus_and_a_label(), tmp_path, outputs=outputs)


def test_a_tflite_file_ends_at_the_chosen_tensor(tmp_path: Path) -> None:
    for outputs, operators in ((["net/1"], 1), (["net/2"], 2), (["net/2", "net/1", "net/2"], 2)):
        graph = imported(two_relus_and_a_label(), tmp_path, outputs=outputs)
        assert [*graph.outputs] == outputs[:2] and len(graph.operators) == operators


def test_an_input_that_nothing_needs_is_left_out(tmp_path: Path) -> None:
    net = Writer()
    x, y, a, b = (net.tensor((1, 4), 0.1, 0, name=name) for name in "xyab")
    net.operator("RELU", [x], [a])
    net.operator("RELU", [y], [b])
    content = net.content([x, y], [a, b])
    assert imported(content, tmp_path).inputs == ("x", "y")
    assert imported(content, tmp_path, outputs=("b",)).inputs == ("y",)


def test_a_detector_is_cut_before_its_custom_operator(tmp_path: Path) -> None:
    net = Writer()
    x, boxes, scores = (net.tensor((1, 4), 0.1, 0, name=n) for n in ("x", "boxes", "scores"))
    net.operator("RELU", [x], [boxes])
    net.operator("RELU6", [boxes], [scores])
    anchors, found = net.constant(np.zeros((1, 4), np.int8), 0.1, 0), net.tensor((1, 4), 0.1, 0)
    net.operator("TFLite_Detection_PostProcess", [boxes, scores, anchors], [found])
    content = net.content([x], [found])
    with pytest.raises(ThimbleError, match=r"model.outputs=.boxes,scores. ends it before that"):
        imported(content, tmp_path)
    cut = imported(content, tmp_path, outputs=("boxes", "scores"))
    assert cut.outputs == ("boxes", "scores")


def forked() -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    layers = {"stem": stem, "head": nn.Linear(4 * 36, 5), "idle": nn.Linear(1, 1)}
    return Of(lambda m, x: m.head(m.stem(x).flatten(1)).argmax(1), **layers)


def test_a_module_ends_at_the_chosen_parts() -> None:
    """In PyTorch, where it is trained, as in the graph."""
    made = TorchModel((8, 8, 3), 5, f"{__name__}:forked", outputs=("head", "stem.0"))
    torch.manual_seed(0)
    network, x = made.build(), torch.rand(2, 3, 8, 8) * 255
    with torch.no_grad():
        head, stem = network(x)
    assert head.shape == (2, 5) and stem.shape == (2, 4, 6, 6) and made.gives == 5
    graph = exported("net", network.eval(), made.examples)
    expected = torch.cat([head, stem.permute(0, 2, 3, 1).flatten(1)], 1).double()
    found = graph.evaluate(x.permute(0, 2, 3, 1).double())
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-3)  # of values up to 255
    for name, said in (("body", "no such tensor; there are stem"), ("idle", "never calls it")):
        with pytest.raises(ThimbleError, match=said):
            replace(made, outputs=(name,)).probe()


def test_an_onnx_file_ends_at_the_chosen_tensor(tmp_path: Path) -> None:
    made = model("a = Relu(x); b = Neg(a); y = TopK(b)", IMAGE)
    made.graph.output.add(name="b")
    onnx.save(made, tmp_path / "net.onnx")
    x = torch.tensor(np.random.default_rng(0).integers(0, 256, (2, *IMAGE[2:], IMAGE[1])) / 1.0)
    for name, sign in (("a", 1), ("b", -1)):
        graph = Onnx(str(tmp_path / "net.onnx"), outputs=(name,)).float_graph()
        assert graph is not None
        assert torch.allclose(graph.evaluate(x), sign * x / 255)
    both = Onnx(str(tmp_path / "net.onnx"), outputs=("a", "b")).float_graph()
    assert both is not None
    assert torch.allclose(both.evaluate(x), torch.cat([x.flatten(1), -x.flatten(1)], 1) / 255)
    with pytest.raises(ThimbleError, match=r"TopK is not supp.* model.outputs=.b. ends it before"):
        Onnx(str(tmp_path / "net.onnx"), outputs=("y",)).float_graph()


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
