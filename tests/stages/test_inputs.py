"""What cannot be read is no failure: it made no run. What sums are calibrated on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline.artifacts import write_npz
from pipeline.errors import Unreadable
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.quantize.samples import FRAMES, calibration_frames
from pipeline.sliding import Windows
from stages import fetch, quantize, train
from tests.comparing import equal
from tests.strategies import nets
from tests.strategies.nets import Net

TFLITE = {"_target_": "pipeline.importers.tflite.TFLite", "path": "bad"}
TORCH = {"_target_": "pipeline.importers.torch_model.TorchModel", "factory": "nowhere:Net"}
TORCH |= {"input_shape": [4, 4, 1]}
RANDOM = {"_target_": "pipeline.training.random_weights.RandomWeights"}
NPZ = {"_target_": "pipeline.datasets.npz.Npz", "path": "bad"}
PLAIN = {"_target_": "pipeline.frontends.none.NoFrontend"}


@pytest.mark.parametrize(
    ("stage", "config"),
    [
        (quantize, {"model": TFLITE}),
        (train, {"model": TORCH, "train": RANDOM, "seed": 1, "threads": 1}),
        (fetch, {"data": NPZ, "frontend": PLAIN}),
    ],
)
def test_what_cannot_be_read(
    stage: Any, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "bad").write_text("no network")
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "dataset.npz", train_images=np.zeros((1, 4, 4, 1), np.uint8))
    with pytest.raises(Unreadable):
        stage.main()


ONE = Windows()
IMAGES = np.arange(100 * 48, dtype=np.int64).reshape(100, 4, 4, 3).astype(np.uint8)


def frames(folder: Path, graph: Graph, number: int = 0, windows: Windows = ONE) -> list[IntArray]:
    write_npz(folder / "dataset.npz", {"train_images": IMAGES[:number]})
    return list(calibration_frames(graph, folder / "dataset.npz", windows))


def small() -> Graph:
    net = Net((4, 4, 3))
    net.conv("input", 2)
    return net.graph()


def test_training_images_evenly_spaced_and_of_a_stream_one_after_the_other(tmp_path: Path) -> None:
    found = frames(tmp_path, small(), 100)
    assert len(found) == FRAMES
    equal(found[0], IMAGES[0].astype(np.int64) - 128)
    equal(found[-1], IMAGES[99].astype(np.int64) - 128)
    windows = Windows(3)
    found = frames(tmp_path, windows.graph(small()), 100, windows)
    assert [each.shape for each in found] == [(3, 4, 3)] * FRAMES
    equal(np.concatenate(found)[:4], IMAGES[0].astype(np.int64) - 128)


def test_pictures_of_nothing_where_there_are_none(tmp_path: Path) -> None:
    """Draw two for a large network; data are read when they are asked for."""
    first, again = (frames(tmp_path, small()) for _ in range(2))
    assert len(first) == FRAMES and np.array_equal(first, again)
    assert np.ptp(first) > 50
    assert len(frames(tmp_path, nets.mobilenet_v2(160, weights=False))) == 2
    assert calibration_frames(small(), Path("nowhere.npz"), ONE)
