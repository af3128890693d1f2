from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": np.zeros((20, 8, 6, 1, 1), np.uint8)}, r"train_images in .*20x8x6x1x1"),
        ({"train_images": np.zeros(20, np.uint8)}, r"\(n, height, width\) or \(n, length\) is"),
        ({"test_images": np.full((6, 8, 6), "a")}, "test_images in .* is <U1: uint8, or floats"),
        ({"test_labels": np.zeros(6)}, "must be integers of shape .*, it is float64 of 6"),
        ({"test_labels": np.int64(3)}, "must be integers of shape .*, it is int64 of no axes"),
        ({"test_labels": np.eye(6, dtype=int)}, r"one-hot, save test_labels\.argmax\(axis=1\)"),
        ({"test_labels": np.arange(6) - 1}, "must lie in 0…255"),
        ({"test_labels": np.arange(5)}, "5 labels do not go with"),
    ],
)
def test_wrong_arrays(tmp_path: Path, changes: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        Npz(path=saved(tmp_path, **changes), validation=5).arrays()


def test_wrong_files_are_one_line(tmp_path: Path) -> None:
    part, cut = tmp_path / "part.npz", tmp_path / "cut.npz"
    np.savez(part, train_images=arrays()["train_images"])
    cut.write_bytes(part.read_bytes()[:-30])
    for path, said in (
        ("", r"needs data\.path"), (tmp_path / "absent.npz", "does not exist"),
        (part, "lacks train_labels, test_images, test_labels"), (cut, "is damaged"),
    ):  # fmt: skip
        with pytest.raises(ThimbleError, match=said):
            Npz(path=str(path)).arrays()


def photographs(*shape: int) -> dict[str, np.ndarray]:
    """Training and test images whose values tell their places."""
    each = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    return {"train_images": np.stack([each] * 20), "test_images": np.stack([each] * 6)}


@pytest.mark.parametrize(
    ("given", "takes", "message"),
    [
        ((3, 8, 6), (8, 6, 3), r"are 3x8x6, .* takes 8x6x3 .*: their channels come first: save np"),
        ((3, 8, 8), (8, 8, 3), r"channels come first: save np\.moveaxis\(images, 1, -1\)"),
        ((6, 8, 3), (8, 6, 3), r"axes are exchanged: save them swapped, with np\.swapaxes"),
        ((6, 8), (8, 6, 1), r"are 6x8, .* axes are exchanged"),
        ((4, 12, 3), (8, 6, 3), r"set model\.input_shape=\[4,12,3\]"),
        ((144,), (8, 6, 3), r"with their axes, images\.reshape\(-1, 8, 6, 3\)"),
        ((8, 6, 3), (1, 1, 144), r"save them flat, images\.reshape\(len\(images\), -1\), in the"),
        ((640,), (1, 1, 490), r"are 640, the network takes 1x1x490"),
        ((2, 640), (1, 640, 2), r"axes are exchanged"),
    ],
)
def test_as_many_values_in_other_axes_are_refused(
    tmp_path: Path, given: tuple[int, ...], takes: tuple[int, ...], message: str
) -> None:
    path = saved(tmp_path, **photographs(*given))
    with pytest.raises(ThimbleError, match=message) as caught:
        Npz(5, path, takes).arrays()
    assert "\n" not in str(caught.value) and "delete" not in str(caught.value)


@pytest.mark.parametrize("part", ["train_images", "test_images"])
def test_either_part_may_be_wrong(tmp_path: Path, part: str) -> None:
    images = photographs(8, 6, 3)
    images[part] = np.moveaxis(images[part], -1, 1)
    with pytest.raises(ThimbleError, match=f"{part} in .* channels come first"):
        Npz(5, saved(tmp_path, **images), (8, 6, 3)).arrays()


@pytest.mark.parametrize(
    ("given", "takes", "stored"),
    [
        ((640,), (1, 1, 640), (1, 1, 640)),
        ((640,), (1, 640, 1), (1, 640, 1)),
        ((640,), (), (1, 640, 1)),
        ((49, 10), (49, 10, 1), (49, 10, 1)),
        ((49, 4), (1, 49, 4), (1, 49, 4)),
        ((49, 4), (49, 1, 4), (49, 1, 4)),
        ((8, 6), (1, 1, 48), (1, 1, 48)),
        ((8, 6, 3), (), (8, 6, 3)),
        ((8, 6), (), (8, 6, 1)),
    ],
)
def test_axes_of_one_do_not_matter(
    tmp_path: Path, given: tuple[int, ...], takes: tuple[int, ...], stored: tuple[int, ...]
) -> None:
    images = photographs(*given)
    parts = Npz(5, saved(tmp_path, **images), takes).arrays()
    assert parts["test_images"].shape == (6, *stored) and len(parts["train_images"]) == 15
    assert parts["test_labels"].dtype == np.uint8
    assert (parts["test_images"].ravel() == images["test_images"].ravel()).all()


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        *((lambda x, kind=kind: (x / 255).astype(kind), lambda y: y[:, None])
          for kind in (np.float32, np.float64, np.float16)),
        (lambda x: x.astype(np.int64), lambda y: y),
    ],
)  # fmt: skip
def test_what_becomes_bytes(tmp_path: Path, images: Any, labels: Any) -> None:
    """Floats of 0 to 1 and other integers of 0 to 255; labels may be in a column."""
    own = arrays()
    path = saved(
        tmp_path, train_images=images(own["train_images"]), train_labels=labels(own["train_labels"])
    )
    found = Npz(path=path).read()[0]
    assert (found.images[..., 0] == own["train_images"]).all()
    assert found.labels.tolist() == own["train_labels"].tolist()


def test_standardised_images_are_told_how_to_become_bytes(tmp_path: Path) -> None:
    """Follow the advice: it gives 256 values over the whole range."""
    images = np.random.default_rng(1).normal(size=(20, 8, 6)).astype(np.float32)
    with pytest.raises(ThimbleError, match=r"train_images in .* is float32 of -") as caught:
        Npz(path=saved(tmp_path, train_images=images)).read()
    said = str(caught.value)
    line = said.partition("save ")[2].partition(", training and test")[0]
    converted = eval(line, {"np": np, "images": images})
    ends = said.partition("model.input_range=[")[2].partition("]")[0]
    low, high = (float(each) for each in ends.split(","))
    assert converted.dtype == np.uint8 and converted.min() == 0 and converted.max() == 255
    assert np.abs(low + converted * (high - low) / 255 - images).max() <= (high - low) / 500
    parts = Npz(path=saved(tmp_path, train_images=converted)).read()
    assert (parts[0].images[..., 0] == converted).all()


def test_other_floats_are_one_line(tmp_path: Path) -> None:
    images = arrays()["train_images"].astype(np.float32)
    with pytest.raises(ThimbleError, match=r"save images\.astype\(np\.uint8\)$"):
        Npz(path=saved(tmp_path, train_images=images)).read()
    for value in (np.nan, np.inf):
        images[7, 2, 1] = value
        with pytest.raises(ThimbleError, match=r"train_images .* not finite"):
            Npz(path=saved(tmp_path, train_images=images)).read()
