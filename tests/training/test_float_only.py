from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.models.network import loaded
from pipeline.models.resnet8 import ResNet8
from pipeline.training.environment import Run
from pipeline.training.examples import Examples, accuracy
from pipeline.training.float_only import FloatOnly, SgdPhase
from pipeline.training.recipe import ACCURACY_FLOAT
from tests.training.support import equal

MODEL = ResNet8((16, 16, 1), 4, (4, 8))
DATA = Synthetic(train=300, shape=(16, 16, 1), classes=4).arrays()
SHORT = FloatOnly(epochs=3, rate=0.1, batch=32, shift_pixels=1.0)


def test_it_learns_and_says_how_well() -> None:
    trained = FloatOnly(epochs=6, rate=0.1, batch=32).train(MODEL, DATA, Run(1))
    reached = float(trained.weights[ACCURACY_FLOAT])
    assert reached > 0.9
    network = loaded(MODEL.build(), trained.weights).eval()
    test = Examples.of(DATA, "test")
    assert accuracy(network, test.pixels, test.labels) == reached
    assert [row.phase for row in trained.rows] == ["float"] * 6


def test_an_interrupted_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, other = (SHORT.train(MODEL, DATA, Run(seed)).weights for seed in (1, 2))
    assert not equal(whole, other)
    epochs = []
    epoch = SgdPhase._epoch

    def killed(self: SgdPhase, *args: object) -> float:
        if len(epochs) == 2:
            raise KeyboardInterrupt
        epochs.append(1)
        return epoch(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(SgdPhase, "_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        SHORT.train(MODEL, DATA, Run(1, checkpoints=tmp_path))
    epochs.clear()
    assert equal(SHORT.train(MODEL, DATA, Run(1, checkpoints=tmp_path)).weights, whole)
    assert len(epochs) == 1


def test_only_weights_decay() -> None:
    phase = SgdPhase("float", 0, 1, 0.1, 32, 0.9, 0.25)
    optimizer = phase.optimizer(list(MODEL.build().parameters()))
    decays = {
        p.ndim: group["weight_decay"] for group in optimizer.param_groups for p in group["params"]
    }
    assert decays == {1: 0.0, 2: 0.25, 4: 0.25}


def test_inputs_need_no_normalization() -> None:
    """The first layer is scaled to pixels of 0…255."""
    trained = FloatOnly(epochs=1, rate=0.0, batch=32).train(MODEL, DATA, Run(1))
    network = loaded(MODEL.build(), trained.weights).eval()
    with torch.no_grad():
        outputs = network(Examples.of(DATA, "test").pixels)
    assert torch.isfinite(outputs).all() and 0.1 < float(outputs.std()) < 5


def test_other_images_are_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"28x28x1.*16x16x1"):
        SHORT.train(MODEL, Synthetic().arrays(), Run(1))
    wrong = DATA | {"test_labels": np.full(100, 9, np.uint8)}
    with pytest.raises(ThimbleError, match="label 9"):
        SHORT.train(MODEL, wrong, Run(1))
