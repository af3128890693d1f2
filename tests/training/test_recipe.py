"""Three phases for integers, and one in float."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from pipeline import config
from pipeline.artifacts import Arrays
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import loaded
from pipeline.models.resnet8 import ResNet8
from pipeline.quantize.int4 import Int4
from pipeline.training.environment import Run
from pipeline.training.examples import Examples, accuracy
from pipeline.training.float_only import FloatOnly, SgdPhase
from pipeline.training.loop import Phase
from pipeline.training.recipe import ACCURACY_FLOAT, ThreePhases
from tests.training.support import equal

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


@pytest.mark.parametrize("epochs", [(2, 0, 0), (0, 2, 0), (0, 0, 2), (0, 0, 0)])
def test_phases_may_be_left_out(epochs: tuple[int, int, int]) -> None:
    trained = ThreePhases(*epochs, batch=32).train(MODEL, DATA, Run(1))
    assert len(trained.rows) == sum(epochs)
    assert 0 <= integer_accuracy(trained.weights, MODEL) <= 1


def test_only_so_many_images_are_used_and_validation_images_to_choose_an_epoch() -> None:
    """With one epoch a phase there is nothing to choose."""
    few = ThreePhases(1, 1, 0, batch=32, images=64)
    changed = DATA["train_images"].copy()
    changed[64:] = 0
    first, second = (
        few.train(MODEL, data, Run(1)).weights
        for data in (
            DATA,
            DATA | {"train_images": changed, "validation_images": 255 - DATA["validation_images"]},
        )
    )
    assert equal(first, second)


RESNET = ResNet8((16, 16, 1), 4, (4, 8))
IMAGES = Synthetic(train=300, shape=(16, 16, 1), classes=4).arrays()
SGD = FloatOnly(epochs=3, rate=0.1, batch=32, shift_pixels=1.0)


def test_it_learns_and_says_how_well() -> None:
    trained = FloatOnly(epochs=6, rate=0.1, batch=32).train(RESNET, IMAGES, Run(1))
    reached = float(trained.weights[ACCURACY_FLOAT])
    assert reached > 0.9
    network = loaded(RESNET.build(), trained.weights).eval()
    test = Examples.of(IMAGES, "test")
    assert accuracy(network, test.pixels, test.labels) == reached
    assert [row.phase for row in trained.rows] == ["float"] * 6


@pytest.mark.parametrize(
    ("recipe", "model", "data", "kind", "left"),
    [(SGD, RESNET, IMAGES, SgdPhase, 1), (ThreePhases(1, 2, 1, batch=32), MODEL, DATA, Phase, 2)],
    ids=["float", "integers"],
)
def test_an_interrupted_training_goes_on(
    recipe: Any, model: Any, data: Arrays, kind: type[Phase], left: int, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """After two epochs, in the second phase where there are three."""
    whole, other = (recipe.train(model, data, Run(seed)).weights for seed in (1, 2))
    assert not equal(whole, other)
    epochs, epoch = list[int](), kind._epoch

    def killed(self: Phase, *args: Any) -> float:
        if len(epochs) == 2:
            raise KeyboardInterrupt
        epochs.append(1)
        return epoch(self, *args)

    monkeypatch.setattr(kind, "_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        recipe.train(model, data, Run(1, checkpoints=tmp_path))
    epochs.clear()
    assert equal(recipe.train(model, data, Run(1, checkpoints=tmp_path)).weights, whole)
    assert len(epochs) == left


def test_only_weights_decay_and_inputs_need_no_normalization() -> None:
    phase = SgdPhase("float", 0, 1, 0.1, 32, 0.9, 0.25)
    optimizer = phase.optimizer(list(RESNET.build().parameters()))
    decays = {
        p.ndim: group["weight_decay"] for group in optimizer.param_groups for p in group["params"]
    }
    assert decays == {1: 0.0, 2: 0.25, 4: 0.25}
    trained = FloatOnly(epochs=1, rate=0.0, batch=32).train(RESNET, IMAGES, Run(1))
    network = loaded(RESNET.build(), trained.weights).eval()
    with torch.no_grad():
        outputs = network(Examples.of(IMAGES, "test").pixels)
    assert torch.isfinite(outputs).all() and 0.1 < float(outputs.std()) < 5


def test_other_images_are_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"28x28x1.*16x16x1"):
        SGD.train(RESNET, Synthetic().arrays(), Run(1))
    wrong = IMAGES | {"test_labels": np.full(100, 9, np.uint8)}
    with pytest.raises(ThimbleError, match="label 9"):
        SGD.train(RESNET, wrong, Run(1))
