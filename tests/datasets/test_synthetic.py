from pathlib import Path

import numpy as np
import pytest
import yaml

from pipeline import config
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError


def test_the_yaml_is_a_small_mnist() -> None:
    parts = config.instantiate(
        yaml.safe_load(Path("conf/data/synthetic.yaml").read_text())
    ).arrays()
    assert parts["train_images"].shape == (400, 28, 28, 1)
    assert parts["validation_images"].shape == parts["test_images"].shape == (100, 28, 28, 1)
    assert parts["train_images"].dtype == np.uint8
    assert set(parts["test_labels"]) == set(range(10))


def test_it_is_the_same_every_time_and_different_for_another_seed() -> None:
    first, again, other = (Synthetic(seed=seed).arrays() for seed in (0, 0, 1))
    assert all((first[key] == again[key]).all() for key in first)
    assert not (first["train_images"] == other["train_images"]).all()


@pytest.mark.parametrize("shape", [(28, 28, 1), (12, 20, 1), (32, 32, 3), (5, 5, 1)])
def test_any_shape(shape: tuple[int, int, int]) -> None:
    parts = Synthetic(shape=shape, train=40, validation=10, test=10).arrays()
    assert parts["train_images"].shape == (40, *shape)


def test_the_classes_can_be_told_apart() -> None:
    """The nearest class mean of the training images is mostly the label: there is something to
    learn, and something left to do better."""
    parts = Synthetic().arrays()
    train = parts["train_images"].reshape(400, -1).astype(float)
    means = np.stack([train[parts["train_labels"] == label].mean(0) for label in range(10)])
    test = parts["test_images"].reshape(100, -1).astype(float)
    nearest = np.square(test[:, None] - means).sum(2).argmin(1)
    assert (nearest == parts["test_labels"]).mean() > 0.8


@pytest.mark.parametrize("options", [{"shape": (4, 28, 1)}, {"classes": 0}, {"classes": 257}])
def test_what_cannot_be_made_is_one_line(options: dict[str, object]) -> None:
    with pytest.raises(ThimbleError, match="up to 256 classes"):
        Synthetic(**options).arrays()  # type: ignore[arg-type]
