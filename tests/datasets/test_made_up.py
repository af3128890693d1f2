"""Splits, and data sets that are made up: classes to be learnt, pictures of nothing, no images."""

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from pipeline.datasets.dataset import Dataset, Split
from pipeline.datasets.noise import pictures
from pipeline.datasets.nothing import Nothing
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError


@dataclass(frozen=True)
class Numbered(Dataset):
    """Image i of the training set holds i; test images hold 200 and more."""

    validation: int = 30
    seed: int = 0

    def read(self) -> tuple[Split, Split]:
        return self.numbered(0, 100), self.numbered(200, 20)

    def numbered(self, first: int, count: int) -> Split:
        values = np.arange(first, first + count, dtype=np.uint8)
        return Split(np.broadcast_to(values[:, None, None, None], (count, 3, 4, 2)), values)


def test_splits_are_disjoint_and_complete_or_one_line() -> None:
    parts = Numbered().arrays()
    train, held = parts["train_labels"], parts["validation_labels"]
    assert (len(train), len(held)) == (70, 30)
    assert sorted([*train, *held]) == list(range(100))
    assert (parts["test_labels"] == np.arange(200, 220)).all()
    assert held[:5].tolist() == [6, 8, 11, 15, 16], "random, but fixed"
    for part in ("train", "validation", "test"):
        images = parts[f"{part}_images"]
        assert images.shape[1:] == (3, 4, 2)
        assert (images[:, 0, 0, 0] == parts[f"{part}_labels"]).all()
    for validation in (-1, 100, 101):
        with pytest.raises(ThimbleError, match=rf"data\.validation={validation} of 100"):
            Numbered(validation=validation).arrays()
    with pytest.raises(ThimbleError, match="5 labels do not go with"):
        Split(np.zeros((4, 2, 2, 1), np.uint8), np.zeros(5, np.uint8))
    with pytest.raises(ThimbleError, match="do not go with images of shape"):
        Split(np.zeros((4, 2, 2), np.uint8), np.zeros(4, np.uint8))


def test_pictures_differ_as_wholes_and_take_little_memory() -> None:
    """Plain noise of 4,096 pixels has means that differ by 1; these differ by 20 and more."""
    images = pictures(200, (64, 64, 1), 0).astype(float)
    assert images.mean((1, 2, 3)).std() > 15
    assert 110 < images.mean() < 146 and 45 < images.std() < 70
    neighbours = np.abs(np.diff(images, axis=2)).mean()
    strangers = np.abs(images - np.roll(images, 17, axis=2)).mean()
    assert 5 < neighbours < strangers / 1.5
    first, again, other = (pictures(3, (20, 30, 3), seed) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).mean() > 0.9 and first.dtype == np.uint8
    for shape in ((1, 1, 640), (49, 10, 1), (1, 7, 2), (224, 224, 3)):
        images = pictures(2, shape, 5)
        assert images.shape == (2, *shape) and len(np.unique(images)) > 5
    tracemalloc.start()
    found = pictures(2, (1 << 17, 1, 1), 0)
    assert tracemalloc.get_traced_memory()[1] < 64 * found.size * found.itemsize
    tracemalloc.stop()
    assert 40 < found.std() < 70 and np.abs(np.diff(found[0, :, 0, 0].astype(int))).mean() < 40


def test_classes_of_any_shape_or_one_line() -> None:
    for shape in ((28, 28, 1), (12, 20, 1), (32, 32, 3), (5, 5, 1)):
        parts = Synthetic(shape=shape, train=40, validation=10, test=10).arrays()
        assert parts["train_images"].shape == (40, *shape)
        assert parts["validation_images"].shape == parts["test_images"].shape == (10, *shape)
    for options in ({"shape": (4, 28, 1)}, {"classes": 0}, {"classes": 257}):
        with pytest.raises(ThimbleError, match="up to 256 classes"):
            Synthetic(**options).arrays()  # type: ignore[arg-type]


def test_the_classes_can_be_told_apart() -> None:
    """The nearest class mean is mostly the label: it can be learnt, and better; seeds differ."""
    parts, again, other = (Synthetic(seed=seed).arrays() for seed in (0, 0, 1))
    assert all((parts[key] == again[key]).all() for key in parts)
    assert not (parts["train_images"] == other["train_images"]).all()
    train = parts["train_images"].reshape(400, -1).astype(float)
    means = np.stack([train[parts["train_labels"] == label].mean(0) for label in range(10)])
    test = parts["test_images"].reshape(100, -1).astype(float)
    nearest = np.square(test[:, None] - means).sum(2).argmin(1)
    assert (nearest == parts["test_labels"]).mean() > 0.8
    arrays = Nothing().arrays()
    for part in ("train", "validation", "test"):
        assert arrays[f"{part}_images"].shape == (0, 1, 1, 1)
        assert arrays[f"{part}_labels"].shape == (0,)
