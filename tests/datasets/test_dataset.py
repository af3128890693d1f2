from dataclasses import dataclass

import numpy as np
import pytest

from pipeline.datasets.dataset import Dataset, Split
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


def test_the_parts_are_disjoint_and_complete() -> None:
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


@pytest.mark.parametrize("validation", [-1, 100, 101])
def test_an_impossible_split_is_one_line(validation: int) -> None:
    with pytest.raises(ThimbleError, match=rf"data\.validation={validation} of 100"):
        Numbered(validation=validation).arrays()


def test_labels_and_images_must_be_as_many() -> None:
    with pytest.raises(ThimbleError, match="5 labels do not go with"):
        Split(np.zeros((4, 2, 2, 1), np.uint8), np.zeros(5, np.uint8))
    with pytest.raises(ThimbleError, match="do not go with images of shape"):
        Split(np.zeros((4, 2, 2), np.uint8), np.zeros(4, np.uint8))
