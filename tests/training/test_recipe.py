"""Recipes: three phases for integers, one in float, random weights that compute something."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from pipeline import config
from pipeline.artifacts import Arrays
from pipeline.datasets.noise import pictures
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
from pipeline.training.random_weights import RandomWeights, enliven
from pipeline.training.recipe import ACCURACY_FLOAT, ThreePhases
from tests.models.counting import member
from tests.training.support import equal

MODEL = Mnist2kb(channels=(3, 4, 5))
DATA = Synthetic(train=300).arrays()
SHORT = ThreePhases(2, 1, 1, batch=32, shift_pixels=1.0)


def integer_accuracy(weights: Arrays, model: Mnist2kb) -> float:
    graph = Int4().graph("net", model, weights)
    found = graph.evaluate(DATA["test_images"].astype(np.int64)).argmax(1)
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
    other = {"train_images": changed, "validation_images": 255 - DATA["validation_images"]}
    first, second = (few.train(MODEL, data, Run(1)).weights for data in (DATA, DATA | other))
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
    epochs, epoch = list[int](), kind.epoch

    def killed(self: Phase, *args: Any) -> float:
        if len(epochs) == 2:
            raise KeyboardInterrupt
        epochs.append(1)
        return epoch(self, *args)

    monkeypatch.setattr(kind, "epoch", killed)
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


def test_the_graph_computes_something() -> None:
    """Thresholds fit: activations are neither all zero nor all clipped."""
    model = Mnist2kb(input_shape=(32, 24, 3), channels=(6, 7))
    weights = RandomWeights().train(model, {}, Run(3)).weights
    graph = Int4().graph("random", model, weights)
    frames = np.random.default_rng(0).integers(0, 256, (20, 32, 24, 3))
    values = graph.run(frames)
    for name in ("conv1", "conv2"):
        assert len(np.unique(values[name])) > 8
        assert (values[name] == 15).mean() < 0.2
    assert len(np.unique(values["logits"])) > 50


@pytest.mark.parametrize(
    "name", ["resnet8", "mobilenet_v1_vww", "mcunet_10fps", "res15", "lenet5", "autoencoder"]
)
def test_activations_stay_alive_through_any_network(name: str) -> None:
    """On pictures that the weights were not scaled on: no layer dies or explodes, outputs tell the
    pictures apart, and a change by one in 256 stays small."""
    model = member(name)
    weights = RandomWeights(images=32).train(model, {}, Run(4)).weights
    network = loaded(model.build(), weights).eval()
    deviations = []
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(lambda *made: deviations.append(float(made[-1].std())))
    images = torch.from_numpy(pictures(24, model.input_shape, 99)).permute(0, 3, 1, 2).float()
    with torch.no_grad():
        outputs = network(images)
        changed = network(images + torch.rand_like(images) * 2 - 1)
    assert min(deviations) > 0.2 and max(deviations) < 5
    assert len(set(outputs.argmax(1).tolist())) >= 2
    assert outputs.std(0).mean() > 0.2
    assert (changed - outputs).square().mean().sqrt() < 0.2 * outputs.std()


@pytest.mark.parametrize(
    ("model", "weight"), [(member("ds_cnn_s"), "first.weight"), (Mnist2kb(), "conv1.weight")]
)
def test_the_seed_decides(model: Any, weight: str) -> None:
    first, again, other = (RandomWeights(8).train(model, {}, Run(s)).weights for s in (1, 1, 2))
    assert equal(first, again) and not (first[weight] == other[weight]).all()
    assert (
        (f"{weight}_log2" in first) == (weight == "conv1.weight") != ("norm.running_var" in first)
    )


def test_statistics_are_those_of_the_pictures() -> None:
    model = member("resnet8")
    network = model.build()
    images = torch.from_numpy(pictures(16, (32, 32, 3), 1)).permute(0, 3, 1, 2).float()
    enliven(network, images)
    norm = network.get_submodule("stem.norm")
    assert isinstance(norm, nn.BatchNorm2d) and norm.momentum == 0.1 and not network.training
    seen = network.get_submodule("stem.conv")(images)
    assert torch.allclose(norm.running_mean, seen.mean((0, 2, 3)), atol=1e-4)
    assert torch.allclose(norm.running_var, seen.var((0, 2, 3)), rtol=1e-3)
    assert torch.allclose(seen.std(), torch.tensor(1.0), atol=1e-2)
    assert not norm._forward_hooks and not network.get_submodule("stem.conv")._forward_hooks
