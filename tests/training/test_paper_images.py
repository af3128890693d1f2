"""Copies of images that teachers judge."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.datasets.synthetic import Synthetic
from pipeline.models.network import PixelPool
from pipeline.training.augment import Distortion
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.paper_images import Copies, Judged, times
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_teacher import Teacher
from pipeline.training.paper_teachers import Teachers, trained
from tests.comparing import equal

DATA = Synthetic(train=60).arrays()
SOURCE = Examples.of(DATA, "train")
DISTORTION = Distortion(10, 0.1, 0.1, 2.0, 1.0)
POOL = PixelPool(2)


class Oracle(nn.Module):
    """Knows the labels by position, errs on every third image, and is unsure about the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        index = (torch.arange(len(pixels)) + self.seen) % len(SOURCE.labels)
        self.seen += len(pixels)
        labels = SOURCE.labels[index]
        wrong = (labels + 1) % 10
        named = torch.where(index % 3 == 0, wrong, labels)
        return 2.0 * nn.functional.one_hot(named, 10).float()


def judged(copies: Copies, run: Run, key: str = "") -> Judged:
    return copies.judged(SOURCE, Oracle(), POOL, run, key, Steps())


def test_what_the_teacher_mistakes_is_left_out_and_without_one_nothing() -> None:
    found = judged(Copies(10, 1, (0.0,), DISTORTION, 1.0), Run())
    kept = np.arange(60) % 3 != 0
    equal(found.labels, DATA["train_labels"][kept])
    pooled = (POOL(SOURCE.pixels) * 16).permute(0, 2, 3, 1).numpy()
    equal(found.images, pooled[kept])
    assert found.images.dtype == np.uint8 and found.images.max() <= 15
    copies = Copies(11, 2, (0.0, 1.0), DISTORTION, 1.0)
    found = copies.judged(SOURCE, None, POOL, Run(), "", Steps())
    equal(found.labels, np.tile(DATA["train_labels"], 2))
    equal(found.shares, 255 * np.eye(11, dtype=np.uint8)[found.labels])


def test_shares_are_the_softmax_at_the_temperature_and_strengths_are_taken_in_turn() -> None:
    cool, warm = (judged(Copies(10, 1, (0.0,), DISTORTION, t), Run()) for t in (1.0, 2.0))
    for found, logit in ((cool, 2.0), (warm, 1.0)):
        right = np.exp(logit) / (np.exp(logit) + 9)
        assert set(found.shares[np.arange(40), found.labels]) == {round(right * 255)}
        assert abs(int(found.shares[0].sum()) - 255) <= 5
    found = judged(Copies(10, 4, (0.0, 1.0), DISTORTION, 1.0), Run())
    parts = np.split(found.images, 4)
    equal(parts[0], parts[2])
    assert not np.array_equal(parts[0], parts[1])
    assert not np.array_equal(parts[1], parts[3])  # the same bounds, drawn anew
    assert found.strengths.tolist() == ([0.0] * 40 + [1.0] * 40) * 2


def test_copies_are_made_once(tmp_path: Path) -> None:
    copies, run = Copies(10, 2, (1.0,), DISTORTION, 1.0), Run(checkpoints=tmp_path)
    first = judged(copies, run, "key")
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 2
    kept[0].unlink()
    teacher = Oracle()
    again = copies.judged(SOURCE, teacher, POOL, run, "key", Steps())
    assert teacher.seen == 60  # one copy was there
    equal(first.images, again.images)
    judged(copies, run, "other key")
    assert len(list(tmp_path.iterdir())) == 4


def test_times_scales_every_bound_and_keeps_flips() -> None:
    flipped = Distortion(10, 0.1, 0.2, 2.0, 1.0, flip=True)
    assert times(flipped, 0.5) == Distortion(5, 0.05, 0.1, 1.0, 0.5, flip=True)
    assert times(DISTORTION, 0) == Distortion()


class Says(nn.Module):
    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.said = torch.tensor([logits])

    def forward(self, images: Tensor) -> Tensor:
        return self.said.expand(len(images), -1)


def test_each_is_another_network_and_the_first_is_the_only_one_s() -> None:
    images = torch.rand(64, 1, 8, 8, generator=torch.Generator().manual_seed(1)) * 255
    examples = Examples(images, torch.arange(64) % 2)
    teacher = Teacher(((4, 3, 2), (6, 3, 1)), epochs=1, batch=16)

    def judge(count: int) -> tuple[nn.Module, str]:
        torch.manual_seed(5)
        return trained(teacher, count, examples, 2, Run(3), "key", Steps())

    (one, key), (two, other) = judge(1), judge(2)
    assert key == "key" != other
    assert isinstance(two, Teachers)
    said = [network(images) for network in (one, *two.each)]
    assert torch.equal(said[0], said[1])
    assert not torch.allclose(said[1], said[2])


def test_logits_are_averaged_and_maximums_halve_what_a_dense_layer_sees() -> None:
    said = Teachers([Says(1.0, 4.0), Says(3.0, -2.0)])(torch.zeros(3, 1, 4, 4))
    assert said.tolist() == [[2.0, 1.0]] * 3
    teacher = Teacher(((4, 3, 1), (6, 3, 1), (5, 3, 1)), pooled=(1, 2))
    dense = list(teacher.build(torch.Size([1, 12, 12]), 10))[-1]
    assert isinstance(dense, nn.Linear)
    assert dense.in_features == 5 * (12 // 4 - 2) ** 2
