import numpy as np
import torch
from torch import nn

from pipeline.datasets.synthetic import Synthetic
from pipeline.models.network import PixelPool
from pipeline.training.augment import Distortion
from pipeline.training.environment import Run
from pipeline.training.examples import Examples, accuracy

DATA = Synthetic(shape=(12, 20, 3)).arrays()


def test_channels_come_first() -> None:
    examples = Examples.of(DATA, "test")
    assert examples.pixels.shape == (100, 3, 12, 20)
    assert examples.pixels.is_contiguous()
    assert float(examples.pixels[7, 2, 3, 4]) == DATA["test_images"][7, 3, 4, 2]
    assert examples.labels.tolist() == DATA["test_labels"].tolist()
    assert len(Examples.of(DATA, "train", 9).labels) == 9


def test_an_epoch_is_shuffled_with_its_labels_and_repeatable() -> None:
    examples, pool = Examples.of(DATA, "train"), PixelPool(2)
    images, labels = examples.epoch(pool, Distortion(), Run(1), 4)
    again, _ = examples.epoch(pool, Distortion(), Run(1), 4)
    other, _ = examples.epoch(pool, Distortion(), Run(1), 5)
    assert torch.equal(images, again)
    assert not torch.equal(images, other)
    whole = examples.pooled(pool)
    places = [int((whole == image).flatten(1).all(1).nonzero()[0]) for image in images[:20]]
    assert examples.labels[places].tolist() == labels[:20].tolist()
    assert sorted(images.flatten(1).sum(1).tolist()) == sorted(whole.flatten(1).sum(1).tolist())


def test_accuracy_counts_every_image_once() -> None:
    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.one_hot(x.long(), 10).float()

    guesses = torch.from_numpy(np.random.default_rng(0).integers(0, 10, 1007))
    labels = torch.from_numpy(np.random.default_rng(1).integers(0, 10, 1007))
    expected = float((guesses == labels).float().mean())
    for batch in (1, 10, 1007, 5000):
        assert abs(accuracy(Fixed(), guesses, labels, batch) - expected) < 1e-6
