from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.metrics import SCORE
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.small_cnn import SmallCnn
from pipeline.quantize.int4 import Int4
from pipeline.training.environment import Run
from pipeline.training.paper import Paper
from pipeline.training.recipe import ACCURACY_FLOAT
from tests.training.support import equal, resumed

MODEL = Mnist2kb(channels=(3, 4))
DATA = Synthetic(train=1200).arrays()
FEW = Synthetic(train=160).arrays()
SHORT = LONG = Paper([4, 2, 1], 12, 6, 4, batch=16, teacher_dropout=0.2, teacher_epochs=6, copies=2,
                     strengths=[0.0, 0.5])  # fmt: skip


TINY = replace(
    SHORT, trials=[2, 2, 1], float_epochs=2, quantized_epochs=1, frozen_epochs=1, teacher_epochs=1
)
"""As many phases, on ``FEW``: enough to see whether two trainings are the same."""


def test_it_learns_and_reports_the_integers_accuracy(tmp_path: Path) -> None:
    trained = SHORT.train(MODEL, DATA, Run(1, checkpoints=tmp_path))
    phases = [row.phase for row in trained.rows]
    assert phases == ["float"] * 12 + ["quantized"] * 6 + ["frozen"] * 4
    graph = Int4().graph("net", MODEL, trained.weights)
    right = {
        part: graph.outputs(DATA[f"{part}_images"].astype(np.int64)).argmax(1)
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
    recipes = ((TINY, 1), (TINY, 1), (TINY, 2), (replace(TINY, teachers=2), 1))
    plain, again, other, taught = (r.train(MODEL, FEW, Run(seed)).weights for r, seed in recipes)
    assert equal(plain, again) and not equal(plain, other) and not equal(plain, taught)
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


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 7])
def test_a_killed_process_resumes_to_the_same_weights(tmp_path: Path, files: int) -> None:
    """SIGKILL once so many checkpoints are there: teacher, copies, or in a phase."""
    found = resumed(tmp_path, "tests.training.test_paper", files, "teacher 1/6")
    assert equal(found, SHORT.train(MODEL, DATA, Run(1)).weights)
