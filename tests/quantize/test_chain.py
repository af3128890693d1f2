"""The four stage programs of learning, one after the other, on the stand-in set; and the float
network's labels: of which images and outputs, and one image at a time if need be."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from pipeline.artifacts import read_npz, write_npz
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.models.lenet5 import LeNet5
from pipeline.models.network import state_arrays
from pipeline.models.resnet8 import ResNet8
from pipeline.quantize import labels as module
from pipeline.quantize.int4 import Int4
from pipeline.quantize.int8 import Int8
from pipeline.quantize.labels import labels
from pipeline.runner import workspace
from pipeline.runner.job import resolved
from pipeline.runner.schema import composed
from pipeline.training.random_weights import RANDOM, enliven
from stages import fetch, prune, quantize, train
from tests.importers.onnx_models import imported, parsed, small_network


def params(*words: str, training: str = "smoke") -> dict[str, Any]:
    given = "data=synthetic", "model=mnist_2kb", f"train={training}", "quantize=int4", "passes=[]"
    return workspace.params(resolved(composed(*given, *words)))


def run(folder: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All four stages in a new ``folder``; SHA-256 of every file they wrote."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("THIMBLE_CHECKPOINTS", raising=False)
    (folder / "params.yaml").write_text(yaml.safe_dump(config))
    for stage in (fetch, train, prune, quantize):
        stage.main()
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.mark.ci
def test_files_are_those_of_the_contract_and_byte_stable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(tmp_path / "a", params(), monkeypatch)
    assert set(first) == {
        "params.yaml",
        "data/dataset.npz",
        "weights.npz",
        "training.csv",
        "pruned.npz",
        "pruning.json",
        "graph.json",
        "graph.npz",
        "quantization.csv",
        "float_labels.npz",
        "passes.json",
    }
    assert first["pruned.npz"] == first["weights.npz"]
    assert first == run(tmp_path / "b", params(), monkeypatch)


def test_pruning_makes_the_graph_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "prune=magnitude", "prune.ratio=0.5", "prune.epochs=1", "prune.batch=32"
    files = run(tmp_path / "a", params(*keys), monkeypatch)
    assert files["pruned.npz"] != files["weights.npz"]
    graph = Graph.load(tmp_path / "a")
    assert graph.tensors["conv2"].shape == (10, 10, 4)
    assert graph.weight_bytes < 800


READ = {"pruned.npz": quantize, "weights.npz": prune, "data/dataset.npz": train}


def test_a_damaged_or_missing_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "a", params(training="random"), monkeypatch)
    Path("params.yaml").write_text(yaml.safe_dump(params()))
    for name, stage in READ.items():
        Path(name).write_bytes(Path(name).read_bytes()[:-40])
        with pytest.raises(ThimbleError, match=f"{name} is damaged"):
            stage.main()
        Path(name).unlink()
        with pytest.raises(ThimbleError, match=f"{name} is missing"):
            stage.main()


def test_images_of_another_shape_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = params()
    config["data"]["shape"] = [32, 32, 3]
    with pytest.raises(ThimbleError, match=r"model\.input_shape=\[32,32,3\]"):
        run(tmp_path / "a", config, monkeypatch)
    config["model"]["input_shape"] = [32, 32, 3]
    run(tmp_path / "b", config, monkeypatch)
    assert Graph.load(tmp_path / "b").tensors["image"].shape == (32, 32, 3)


MODEL = ResNet8(input_shape=(16, 16, 3))
IMAGES = np.random.default_rng(0).integers(0, 256, (30, 16, 16, 3)).astype(np.uint8)


PIXELS = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).float()


def lively() -> nn.Module:
    """Not one label for all images."""
    torch.manual_seed(0)
    network = MODEL.build()
    enliven(network, PIXELS)
    return network


def one_by_one(network: nn.Module) -> list[int]:
    with torch.no_grad():
        return [int(network(image[None]).argmax()) for image in PIXELS]


def test_of_a_model_with_its_weights() -> None:
    network = lively()
    expected = one_by_one(network)
    assert len(set(expected)) > 1
    found = Int8().float_labels(MODEL, state_arrays(network), IMAGES, 1)
    assert found.tolist() == expected
    assert len(Int4().float_labels(MODEL, {}, IMAGES, 1)) == 0, "there is none before 4 bits"


def test_of_a_float_file() -> None:
    network = imported("net", parsed(small_network()), (-60.0, 60.0))
    images = IMAGES[:, :8, 8:]
    found = Int8().float_labels(network, {}, images, 1)
    expected = network.evaluate(torch.from_numpy(images).float()).argmax(1)
    assert found.tolist() == expected.tolist() and len(set(found.tolist())) > 1


def test_of_a_large_network_the_first_images(monkeypatch: pytest.MonkeyPatch) -> None:
    network = lively()
    monkeypatch.setattr(module, "LARGEST_MACS", 900)
    found = Int8().float_labels(MODEL, state_arrays(network), IMAGES, 100)
    assert found.tolist() == one_by_one(network)[:9]
    assert len(Int8().float_labels(MODEL, state_arrays(network), IMAGES, 10**6)) == 8


def test_a_network_of_one_image_at_a_time() -> None:
    torch.manual_seed(0)
    dense = nn.Linear(768, 10)
    found = labels(lambda x: dense(x.reshape(1, -1)), IMAGES, 1, 1)
    whole = labels(lambda x: dense(x.flatten(1)), IMAGES, 1, 1)
    assert found.tolist() == whole.tolist() and len(found) == 30
    mixed = labels(lambda x: x.mean((0, 1, 2))[None], IMAGES, 1, 1)  # one answer for the batch
    assert len(mixed) == 30


def test_images_are_no_labels_and_threads_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # here threads are asked for indeed
    before = torch.get_num_threads()
    assert len(labels(lambda x: x, IMAGES, 1, before + 1)) == 0
    assert len(labels(lambda x: x.flatten(1), IMAGES[:0], 1, before + 1)) == 0
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError, match="shape"):
        labels(lambda x: x.reshape(7, -1), IMAGES[:1], 1, before + 1)
    assert torch.get_num_threads() == before


def test_the_stage_asks_the_float_network_unless_its_weights_are_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, data = LeNet5(), Synthetic(train=40, validation=5, test=12).arrays()
    config = {
        "model": {"_target_": "pipeline.models.lenet5.LeNet5", "name": "lenet5"},
        "quantize": {"_target_": "pipeline.quantize.int8.Int8", "name": "int8", "images": 8},
        "passes": [],
        "sliding": {"rows": 0},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    write_npz(tmp_path / "data" / "dataset.npz", data)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    weights = state_arrays(network.build())
    for more, count in (({}, 12), (RANDOM, 0)):
        write_npz(tmp_path / "pruned.npz", {**weights, **more})
        quantize.main()
        found = read_npz(tmp_path / "float_labels.npz").get("labels", ())
        assert len(found) == count
    write_npz(tmp_path / "data" / "dataset.npz", {**data, "test_labels": np.full(12, 10)})
    with pytest.raises(ThimbleError, match="label 10, lenet5 gives 10 outputs"):
        quantize.main()
