"""Chains of four bits lose channels, by ``prune=magnitude`` alone."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.artifacts import Arrays
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.models.google12 import Google12
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.pruning.chain import Chain
from pipeline.pruning.channels import ChannelPruning
from pipeline.pruning.magnitude import Magnitude
from pipeline.pruning.width import Width
from pipeline.quantize.int4 import Int4
from pipeline.quantize.parameters import from_arrays, to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.augment import Distortion
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.random_weights import RANDOM
from pipeline.training.recipe import ThreePhases

MODEL = Mnist2kb(channels=(4, 6, 8))
DATA = Synthetic().arrays()


@cache
def trained() -> Arrays:
    return ThreePhases(3, 1, 1, batch=32).train(MODEL, DATA, Run(1)).weights


def chain(ratio: float) -> Chain:
    return Chain(ratio, 0, 0.0, 32)


def cut(weights: Arrays, ratio: float) -> Arrays:
    return chain(ratio).cut(from_arrays(MODEL, weights), weights)[0]


@pytest.mark.ci
def test_channels_go_in_every_layer_that_touches_them_as_the_table_says() -> None:
    pruned = Magnitude(ratio=0.5, epochs=0).prune(MODEL, trained(), DATA, Run(1))
    smaller, kept = pruned.weights, cut(trained(), 0.5)
    shapes = [smaller[f"{name}.weight"].shape for name in ("conv1", "conv2", "conv3", "dense")]
    assert shapes == [(2, 1, 3, 3), (3, 2, 3, 3), (4, 3, 3, 3), (10, 4 * 16)]
    assert [smaller[f"conv{i}.bias"].shape for i in (1, 2, 3)] == [(2,), (3,), (4,)]
    assert all((smaller[key] == kept[key]).all() for key in kept)
    assert "accuracy_float" in trained() and "accuracy_float" not in smaller
    assert [tuple(row.values()) for row in pruned.tables["layers"]] == [
        ("conv1", 4, 2, 36, 18),
        ("conv2", 6, 3, 216, 54),
        ("conv3", 8, 4, 432, 108),
        ("dense", 10, 10, 1280, 640),
    ]
    names = ("layer", "channels_before", "channels_after", "weights_before", "weights_after")
    assert all(tuple(row) == names for row in pruned.tables["layers"])


def test_the_weakest_go_and_the_order_stays() -> None:
    weight = np.array([[3, -1], [0.5, 0.5], [-9, 0], [2, 2.5]], np.float32)
    assert chain(0.25).strongest(weight).tolist() == [True, False, True, True]
    assert chain(0.5).strongest(weight).tolist() == [False, False, True, True]
    assert chain(0.99).strongest(weight).tolist() == [False, False, True, False]
    assert chain(0.0).strongest(weight).all()


def test_channels_that_do_nothing_go_without_a_trace() -> None:
    """With two dead channels a layer, the smaller network gives the same real logits."""
    weights = {name: value.copy() for name, value in trained().items()}
    for layer, dead in (("conv1", [1]), ("conv2", [0, 4]), ("conv3", [3, 7])):
        weights[f"{layer}.weight"][dead] = 0
        weights[f"{layer}.bias"][dead] = 0
    whole = from_arrays(MODEL, weights)
    small = from_arrays(MODEL, cut(weights, 0.25))
    pooled = whole.pool(torch.from_numpy(DATA["test_images"]).permute(0, 3, 1, 2).float())
    with torch.no_grad():
        assert torch.equal(whole(pooled), small(pooled))
    assert len(small.quantized["conv3"].bias) == 6


def test_the_network_stays_good_and_every_later_stage_sees_a_smaller_one() -> None:
    pruned = Magnitude(ratio=0.25, epochs=6, batch=32).prune(MODEL, trained(), DATA, Run(1))
    whole, small = (Int4().graph("net", MODEL, w) for w in (trained(), pruned.weights))
    assert small.macs < 0.7 * whole.macs
    assert small.weight_bytes < 0.8 * whole.weight_bytes
    found = small.evaluate(DATA["test_images"].astype(np.int64)).argmax(1)
    assert (found == DATA["test_labels"]).mean() > 0.8


def test_fine_tuning_is_repeatable_and_does_something() -> None:
    """Without epochs no data are needed."""
    method = Magnitude(ratio=0.5, epochs=1, batch=32)
    first, again = (method.prune(MODEL, trained(), DATA, Run(1)).weights for _ in range(2))
    assert all((first[key] == again[key]).all() for key in first)
    assert not (first["dense.weight"] == cut(trained(), 0.5)["dense.weight"]).all()
    none = {name: array[:0] for name, array in DATA.items()}
    pruned = Magnitude(ratio=0.5, epochs=0).prune(MODEL, trained() | RANDOM, none, Run(1))
    assert RANDOM.keys() <= pruned.weights.keys()


def test_images_and_their_distortions_are_the_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, epoch = trained(), Examples.epoch
    seen: list[tuple[int, Distortion]] = []

    def watched(self: Examples, pool: Any, distortion: Distortion, *rest: Any) -> Any:
        seen.append((len(self.labels), distortion))
        return epoch(self, pool, distortion, *rest)

    monkeypatch.setattr(Examples, "epoch", watched)
    method = Magnitude(images=64, epochs=1, batch=32, shift_pixels=2.0, flip=True)
    tuned = method.prune(MODEL, weights | RANDOM, DATA, Run(1, threads=1)).weights
    assert seen == [(64, Distortion(shift_pixels=2.0, flip=True))]
    assert not RANDOM.keys() & tuned.keys()


MISTAKES: list[tuple[Callable[[], ChannelPruning], str]] = [
    (lambda: Magnitude(ratio=-0.1), r"prune\.ratio=-0\.1"),
    (lambda: Magnitude(ratio=1.0), r"prune\.ratio=1 "),
    (lambda: Magnitude(macs=100), r"prune\.macs: a chain for quantize=int4 is pruned by"),
    (lambda: Width(width=0.5), "only prune=magnitude makes smaller"),
]


@pytest.mark.parametrize(("method", "said"), MISTAKES)
def test_mistakes_limits_other_methods_and_units_are_one_line(
    method: Callable[[], ChannelPruning], said: str
) -> None:
    with pytest.raises(ThimbleError, match=said):
        method().prune(MODEL, trained(), DATA, Run(1))
    model = Google12(input_shape=(28, 28, 1), joined=2, channels=(3, 4), units=(4,))
    weights = to_arrays(QuantizedNetwork(model.chain()))
    with pytest.raises(ThimbleError, match=r"residual units are added up.*prune=none"):
        chain(0.5).cut(from_arrays(model, weights), weights)
