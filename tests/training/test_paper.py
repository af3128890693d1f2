"""The paper's recipe: what it learns, keeps and repeats; copies of images that teachers label."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.metrics import SCORE
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import PixelPool
from pipeline.models.small_cnn import SmallCnn
from pipeline.quantize.int4 import Int4
from pipeline.training.augment import Distortion
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.paper import Paper
from pipeline.training.paper_images import Copies, SoftLabelled, times
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_teacher import Teacher, Teachers, trained
from pipeline.training.recipe import ACCURACY_FLOAT
from tests.comparing import equal as same
from tests.training.support import Fragile, equal

MODEL = Mnist2kb(channels=(3, 4))
DATA = Synthetic(train=1200).arrays()
FEW = Synthetic(train=160).arrays()
SHORT = Paper([4, 2, 1], 12, 6, 4, batch=16, teacher_dropout=0.2, teacher_epochs=6, copies=2,
              strengths=[0.0, 0.5])  # fmt: skip


TINY = replace(
    SHORT, trials=[2, 2, 1], float_epochs=2, quantized_epochs=1, frozen_epochs=1, teacher_epochs=1
)
"""As many phases, on ``FEW``: enough to see whether two trainings are the same."""


@pytest.mark.ci
def test_it_learns_and_reports_the_integers_accuracy(tmp_path: Path) -> None:
    trained = SHORT.train(MODEL, DATA, Run(1, checkpoints=tmp_path))
    phases = [row.phase for row in trained.rows]
    assert phases == ["float"] * 12 + ["quantized"] * 6 + ["frozen"] * 4
    graph = Int4().graph("net", MODEL, trained.weights)
    right = {
        part: graph.evaluate(DATA[f"{part}_images"].astype(np.int64)).argmax(1)
        == DATA[f"{part}_labels"]
        for part in ("validation", "test")
    }
    assert right["validation"].mean() == trained.rows[-1].validation_accuracy > 0.8
    assert right["test"].mean() > 0.8
    assert float(trained.weights[ACCURACY_FLOAT]) > 0.8
    assert 0.5 < float(trained.weights[SCORE]) <= 1


def test_it_learns_without_a_teacher() -> None:
    """As a search's short trainings do, without the last phase, too."""
    short = replace(SHORT, teacher=[], label_share=1.0, trials=[1, 1, 1], frozen_epochs=0)
    trained = short.train(MODEL, DATA, Run(1))
    assert [row.phase for row in trained.rows] == ["float"] * 12 + ["quantized"] * 6
    assert trained.rows[-1].validation_accuracy > 0.8
    with pytest.raises(ThimbleError, match=r"label_share=0\.7: without a teacher"):
        Paper([1, 1, 1], 1, 1, 1, teacher=[])


@pytest.mark.ci
def test_the_seed_decides_and_how_many_teachers() -> None:
    others = (TINY, 2), (replace(TINY, teachers=2), 1), (replace(TINY, orthogonal=False), 1)
    recipes = ((TINY, 1), (TINY, 1), *others)
    plain, again, *rest = (r.train(MODEL, FEW, Run(seed)).weights for r, seed in recipes)
    assert equal(plain, again) and not any(equal(plain, each) for each in rest)
    with pytest.raises(ThimbleError, match=r"train\.teachers=0: at least 1"):
        replace(SHORT, teachers=0)


@pytest.mark.ci
def test_validation_images_choose_and_are_not_trained_on() -> None:
    """With a single trial there is nothing to choose."""
    single = replace(TINY, trials=[1, 1, 1])
    other = DATA | {"validation_images": 255 - DATA["validation_images"]}
    first, second = (dict(single.train(MODEL, each, Run(1)).weights) for each in (DATA, other))
    assert first.pop(SCORE) > second.pop(SCORE)
    assert equal(first, second)


@pytest.mark.ci
def test_finished_phases_are_kept_when_later_ones_change(tmp_path: Path) -> None:
    run = Run(1, checkpoints=tmp_path)
    first = TINY.train(MODEL, FEW, run)
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    longer = replace(TINY, frozen_epochs=2).train(MODEL, FEW, run)
    added = {path.name for path in tmp_path.iterdir()} - kept.keys()
    assert len(added) == 1
    assert all((tmp_path / name).stat().st_mtime_ns == when for name, when in kept.items())
    assert longer.rows[:3] == first.rows[:3]


@pytest.mark.ci
def test_the_last_phase_sees_weaker_distortions(tmp_path: Path) -> None:
    run = Run(1, checkpoints=tmp_path)
    each = [replace(TINY, last_strength=most).train(MODEL, FEW, run) for most in (0.0, 0.5, 1.0)]
    assert each[0].rows[:3] == each[1].rows[:3]
    assert each[0].rows[3:] != each[1].rows[3:]
    assert equal(each[1].weights, each[2].weights)  # there are none between 0.5 and 1


@pytest.mark.slow
def test_probes_choose_who_goes_on_from_before_quantization(tmp_path: Path) -> None:
    run = Run(1, checkpoints=tmp_path)
    lengths = {"probe_float_epochs": 4, "probe_quantized_epochs": 3}
    probed = replace(SHORT, trials=[1, 1, 1], probes=3, **lengths)
    rows = probed.train(MODEL, DATA, run).rows
    counts = {"float_probe": 4, "quantized_probe": 3, "float": 12, "quantized": 6, "frozen": 4}
    assert [row.phase for row in rows] == [name for name, n in counts.items() for _ in range(n)]
    assert [row.epoch for row in rows] == list(range(1, 30))
    assert rows[7].loss < rows[0].loss / 2  # not from the beginning again
    shorter = replace(probed, quantized_epochs=1, frozen_epochs=1).train(MODEL, DATA, run).rows
    assert shorter[:19] == rows[:19]


def test_other_networks_and_settings_are_one_line() -> None:
    with pytest.raises(ThimbleError, match="three numbers"):
        Paper([4, 2], 1, 1, 1)
    with pytest.raises(ThimbleError, match=r"train\.probes=3: at least the 4 trials"):
        replace(SHORT, probes=3)
    with pytest.raises(ThimbleError, match=r"train\.teacher_dropout=1: a share"):
        replace(SHORT, teacher_dropout=1.0)
    with pytest.raises(ThimbleError, match=r"train\.teacher_pooled=\[6\]: .* 5 convolutions"):
        replace(SHORT, teacher_pooled=[6])
    with pytest.raises(ThimbleError, match="2x2 and more"):
        SHORT.train(SmallCnn(convolutions=((3, 28, 1),), pooled=()), DATA, Run(1))


SIXTY = Synthetic(train=60).arrays()
SOURCE = Examples.of(SIXTY, "train")
DISTORTION = Distortion(
    rotation_degrees=10, scale=0.1, shear=0.1, shift_pixels=2.0, elastic_pixels=1.0
)
POOL = PixelPool(2)
NOW = Steps()


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


def soft_labelled(copies: Copies, run: Run, key: str = "") -> SoftLabelled:
    return copies.soft_labelled(SOURCE, Oracle(), POOL, run, key, Steps())


def test_what_the_teacher_mistakes_is_left_out_and_without_one_nothing() -> None:
    found = soft_labelled(Copies(10, 1, (0.0,), DISTORTION, 1.0), Run())
    kept = np.arange(60) % 3 != 0
    same(found.labels, SIXTY["train_labels"][kept])
    pooled = (POOL(SOURCE.pixels) * 16).permute(0, 2, 3, 1).numpy()
    same(found.images, pooled[kept])
    assert found.images.dtype == np.uint8 and found.images.max() <= 15
    copies = Copies(11, 2, (0.0, 1.0), DISTORTION, 1.0)
    found = copies.soft_labelled(SOURCE, None, POOL, Run(), "", Steps())
    same(found.labels, np.tile(SIXTY["train_labels"], 2))
    same(found.shares, 255 * np.eye(11, dtype=np.uint8)[found.labels])


def test_shares_are_the_softmax_at_the_temperature_and_strengths_are_taken_in_turn() -> None:
    cool, warm = (soft_labelled(Copies(10, 1, (0.0,), DISTORTION, t), Run()) for t in (1.0, 2.0))
    for found, logit in ((cool, 2.0), (warm, 1.0)):
        right = np.exp(logit) / (np.exp(logit) + 9)
        assert set(found.shares[np.arange(40), found.labels]) == {round(right * 255)}
        assert abs(int(found.shares[0].sum()) - 255) <= 5
    found = soft_labelled(Copies(10, 4, (0.0, 1.0), DISTORTION, 1.0), Run())
    parts = np.split(found.images, 4)
    same(parts[0], parts[2])
    assert not np.array_equal(parts[0], parts[1])
    assert not np.array_equal(parts[1], parts[3])  # the same bounds, drawn anew
    assert found.strengths.tolist() == ([0.0] * 40 + [1.0] * 40) * 2


def test_copies_are_made_once_and_strengths_scale_every_bound_but_flips(tmp_path: Path) -> None:
    copies, run = Copies(10, 2, (1.0,), DISTORTION, 1.0), Run(checkpoints=tmp_path)
    first = soft_labelled(copies, run, "key")
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 2
    kept[0].unlink()
    teacher = Oracle()
    again = copies.soft_labelled(SOURCE, teacher, POOL, run, "key", Steps())
    assert teacher.seen == 60  # one copy was there
    same(first.images, again.images)
    soft_labelled(copies, run, "other key")
    assert len(list(tmp_path.iterdir())) == 4
    flipped = Distortion(
        rotation_degrees=10, scale=0.1, shear=0.2, shift_pixels=2.0, elastic_pixels=1.0, flip=True
    )
    assert times(flipped, 0.5) == Distortion(
        rotation_degrees=5, scale=0.05, shear=0.1, shift_pixels=1.0, elastic_pixels=0.5, flip=True
    )
    assert times(DISTORTION, 0) == Distortion()


class Says(nn.Module):
    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.said = torch.tensor([logits])

    def forward(self, images: Tensor) -> Tensor:
        return self.said.expand(len(images), -1)


def test_each_is_another_network_and_the_first_is_the_only_one_s(tmp_path: Path) -> None:
    """Ended early, it goes on where it was."""
    images = torch.rand(64, 1, 8, 8, generator=torch.Generator().manual_seed(1)) * 255
    examples = Examples(images, torch.arange(64) % 2)
    teacher = Teacher(((4, 3, 2), (6, 3, 1)), epochs=4, batch=16)

    def averaged(count: int, keep: Path | None = None, steps: Steps = NOW) -> tuple[nn.Module, str]:
        torch.manual_seed(5)
        return trained(teacher, count, examples, 2, Run(3, checkpoints=keep), "key", steps)

    (one, key), (two, other) = averaged(1), averaged(2)
    assert key == "key" != other
    assert isinstance(two, Teachers)
    with pytest.raises(KeyboardInterrupt):
        averaged(1, tmp_path, Fragile())
    said = [network(images) for network in (one, averaged(1, tmp_path)[0], *two.each)]
    assert torch.equal(said[0], said[1]) and torch.equal(said[0], said[2])
    assert not torch.allclose(said[2], said[3])


def test_logits_are_averaged_and_maximums_halve_what_a_dense_layer_sees() -> None:
    said = Teachers([Says(1.0, 4.0), Says(3.0, -2.0)])(torch.zeros(3, 1, 4, 4))
    assert said.tolist() == [[2.0, 1.0]] * 3
    teacher = Teacher(((4, 3, 1), (6, 3, 1), (5, 3, 1)), pooled=(1, 2))
    dense = list(teacher.build(torch.Size([1, 12, 12]), 10))[-1]
    assert isinstance(dense, nn.Linear)
    assert dense.in_features == 5 * (12 // 4 - 2) ** 2
