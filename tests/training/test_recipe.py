from pathlib import Path

import numpy as np
import pytest
import yaml

from pipeline import config
from pipeline.artifacts import Arrays
from pipeline.datasets.synthetic import Synthetic
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.int4 import Int4
from pipeline.training.environment import Run
from pipeline.training.recipe import ACCURACY_FLOAT, ThreePhases
from tests.training.support import equal, resumed

MODEL = Mnist2kb(channels=(3, 4, 5))
DATA = Synthetic(train=300).arrays()
SHORT = ThreePhases(2, 1, 1, batch=32, shift_pixels=1.0)


def integer_accuracy(weights: Arrays, model: Mnist2kb) -> float:
    graph = Int4().graph("net", model, weights)
    found = graph.outputs(DATA["test_images"].astype(np.int64)).argmax(1)
    return float((found == DATA["test_labels"]).mean())


def test_smoke_learns_the_stand_in() -> None:
    smoke = config.instantiate(yaml.safe_load(Path("conf/train/smoke.yaml").read_text()))
    trained = smoke.train(Mnist2kb(), Synthetic().arrays(), Run(1))
    assert [row.phase for row in trained.rows] == ["float"] * 2 + ["quantized"] * 2 + ["frozen"]
    assert float(trained.weights[ACCURACY_FLOAT]) > 0.8
    assert integer_accuracy(trained.weights, Mnist2kb()) > 0.8


def test_images_made_ahead_are_the_same() -> None:
    alone, helped = (SHORT.train(MODEL, DATA, Run(1, threads=n)) for n in (1, 2))
    assert equal(alone.weights, helped.weights)
    assert alone.rows == helped.rows
    assert not equal(alone.weights, SHORT.train(MODEL, DATA, Run(2)).weights), "another seed"
    thresholds = [value for name, value in alone.weights.items() if name.endswith("_log2")]
    assert len(thresholds) == 11 and all(float(value).is_integer() for value in thresholds)


def test_the_validation_images_are_not_trained_on() -> None:
    """They choose an epoch: with one epoch a phase there is nothing to choose."""
    single = ThreePhases(1, 1, 1, batch=32)
    other = DATA | {"validation_images": 255 - DATA["validation_images"]}
    first, second = (single.train(MODEL, data, Run(1)).weights for data in (DATA, other))
    assert equal(first, second)


@pytest.mark.parametrize("epochs", [(2, 0, 0), (0, 2, 0), (0, 0, 2), (0, 0, 0)])
def test_phases_may_be_left_out(epochs: tuple[int, int, int]) -> None:
    trained = ThreePhases(*epochs, batch=32).train(MODEL, DATA, Run(1))
    assert len(trained.rows) == sum(epochs)
    assert 0 <= integer_accuracy(trained.weights, MODEL) <= 1


def test_only_so_many_images_are_used() -> None:
    few = ThreePhases(1, 1, 0, batch=32, images=64)
    changed = DATA["train_images"].copy()
    changed[64:] = 0
    first, second = (
        few.train(MODEL, data, Run(1)).weights for data in (DATA, DATA | {"train_images": changed})
    )
    assert equal(first, second)


LONG = ThreePhases(4, 4, 4, batch=16, elastic_pixels=0.5)


@pytest.mark.slow
def test_a_killed_process_resumes_to_the_same_weights(tmp_path: Path) -> None:
    """SIGKILL while it trains, in whatever phase that is, then the same again."""
    found = resumed(tmp_path, "tests.training.test_recipe", 2, "epoch 1/12")
    assert equal(found, LONG.train(MODEL, DATA, Run(1)).weights)
