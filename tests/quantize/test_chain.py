"""The four stage programs of learning, one after the other, on the stand-in set."""

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.training.augment import Distortion
from stages import fetch, prune, quantize, train

CONF = Path("conf").absolute()
STAGES = {"fetch": fetch, "train": train, "prune": prune, "quantize": quantize}
CHOICE = {
    "data": "synthetic",
    "model": "mnist_2kb",
    "train": "smoke",
    "frontend": "none",
    "prune": "none",
    "quantize": "int4",
}


def params(**choice: str) -> dict[str, Any]:
    groups = {
        group: yaml.safe_load((CONF / group / f"{option}.yaml").read_text())
        for group, option in (CHOICE | choice).items()
    }
    sliding = {"windows": 1, "rows": 1}
    return groups | {"seed": 1, "threads": 2, "passes": [], "sliding": sliding}


def run(folder: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All four stages in a new ``folder``; SHA-256 of every file they wrote."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("THIMBLE_CHECKPOINTS", raising=False)
    (folder / "params.yaml").write_text(yaml.safe_dump(config))
    for stage in STAGES.values():
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
        "float_labels.npz",
        "passes.json",
    }
    assert first["pruned.npz"] == first["weights.npz"]
    assert first == run(tmp_path / "b", params(), monkeypatch)


def test_pruning_makes_the_graph_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = params(prune="magnitude")
    config["prune"] |= {"ratio": 0.5, "epochs": 1, "batch": 32} | asdict(Distortion())
    files = run(tmp_path / "a", config, monkeypatch)
    assert files["pruned.npz"] != files["weights.npz"]
    graph = Graph.load(tmp_path / "a")
    assert graph.tensors["conv2"].shape == (10, 10, 4)
    assert graph.weight_bytes < 800


def test_random_weights_need_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "a", params(train="random"), monkeypatch)
    graph = Graph.load(tmp_path / "a")
    assert (graph.name, graph.macs) == ("mnist_2kb", 94_928)
    assert (tmp_path / "a" / "training.csv").read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("name", "stage"),
    [("data/dataset.npz", "train"), ("weights.npz", "prune"), ("pruned.npz", "quantize")],
)
@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_damaged_or_missing_file_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stage: str, damage: str
) -> None:
    folder = tmp_path / "a"
    run(folder, params(train="random"), monkeypatch)
    (folder / "params.yaml").write_text(yaml.safe_dump(params()))
    path = folder / name
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    else:
        path.unlink()
    with pytest.raises(ThimbleError, match=rf"{name} is (damaged|missing)") as caught:
        STAGES[stage].main()
    assert "\n" not in str(caught.value)


def test_images_the_model_does_not_take_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = params()
    config["data"]["shape"] = [32, 32, 3]
    with pytest.raises(ThimbleError, match=r"model\.input_shape=\[32,32,3\]"):
        run(tmp_path / "a", config, monkeypatch)
    config["model"]["input_shape"] = [32, 32, 3]
    run(tmp_path / "b", config, monkeypatch)
    assert Graph.load(tmp_path / "b").tensors["image"].shape == (32, 32, 3)
