from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.datasets.noise import pictures
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import loaded
from pipeline.quantize.int4 import Int4
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights, enliven
from tests.models.counting import member
from tests.training.support import equal


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

    def hook(layer: nn.Module, _: object, output: torch.Tensor) -> None:
        deviations.append(float(output.std()))

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(hook)
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
