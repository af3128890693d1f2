from pathlib import Path

import numpy as np
import pytest
import yaml

from pipeline import config
from pipeline.datasets.npz import Npz
from pipeline.errors import ThimbleError


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "train_images": random.integers(0, 256, (20, 8, 6), dtype=np.uint8),
        "train_labels": np.arange(20) % 3,
        "test_images": random.integers(0, 256, (6, 8, 6), dtype=np.uint8),
        "test_labels": np.arange(6) % 3,
    }


def saved(folder: Path, **changes: np.ndarray) -> str:
    path = folder / "mine.npz"
    np.savez(path, **arrays() | changes)
    return str(path)


def test_images_without_a_channel_axis_get_one(tmp_path: Path) -> None:
    parts = Npz(path=saved(tmp_path), validation=5).arrays()
    assert parts["train_images"].shape == (15, 8, 6, 1)
    assert (parts["test_images"][..., 0] == arrays()["test_images"]).all()
    assert parts["test_labels"].dtype == np.uint8


def test_colours_are_kept(tmp_path: Path) -> None:
    colours = np.zeros((6, 8, 6, 3), np.uint8)
    train = np.zeros((20, 8, 6, 3), np.uint8)
    path = saved(tmp_path, test_images=colours, train_images=train)
    assert Npz(path=path, validation=5).arrays()["test_images"].shape == (6, 8, 6, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": np.zeros((20, 8, 6))}, "float64, uint8 is needed"),
        ({"test_labels": np.zeros(6)}, "must be integers"),
        ({"test_labels": np.arange(6) - 1}, "must lie in 0…255"),
        ({"test_labels": np.arange(5)}, "5 labels do not go with"),
    ],
)
def test_wrong_arrays_are_one_line(
    tmp_path: Path, changes: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(ThimbleError, match=message):
        Npz(path=saved(tmp_path, **changes), validation=5).arrays()


def test_wrong_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=r"needs data\.path"):
        Npz().arrays()
    with pytest.raises(ThimbleError, match="does not exist"):
        Npz(path=str(tmp_path / "absent.npz")).arrays()
    np.savez(tmp_path / "part.npz", train_images=arrays()["train_images"])
    with pytest.raises(ThimbleError, match="lacks train_labels, test_images, test_labels"):
        Npz(path=str(tmp_path / "part.npz")).arrays()
    (tmp_path / "cut.npz").write_bytes((tmp_path / "part.npz").read_bytes()[:-30])
    with pytest.raises(ThimbleError, match="is damaged"):
        Npz(path=str(tmp_path / "cut.npz")).arrays()


def test_the_yaml_asks_for_a_path() -> None:
    node = yaml.safe_load(Path("conf/data/npz.yaml").read_text())
    assert config.instantiate(node) == Npz(path="", validation=0)
