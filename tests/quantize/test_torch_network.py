"""From torch.export to C: a residual network's labels are those of PyTorch's own quantized one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from pipeline import config
from pipeline.artifacts import Arrays
from pipeline.datasets.cifar10 import Cifar10
from pipeline.datasets.store import home, is_good
from pipeline.graph.tensor import IntArray
from pipeline.importers.lower import lower
from pipeline.importers.torch_export import exported
from pipeline.models.network import loaded
from pipeline.models.resnet8 import ResNet8
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.predictor import Predictor
from pipeline.training.environment import Run
from tests.codegen.int8.support import host
from tests.quantize.nets import Own, pixels
from tests.quantize.torch_network import outputs

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per", "ignore:torch.ao")


@dataclass(frozen=True)
class Labels:
    """Of the test images: ours, of PyTorch's own quantized network, of the float one, and true."""

    ours: IntArray
    theirs: IntArray
    exact: IntArray
    true: IntArray


def labels(net: nn.Module, example: torch.Tensor, data: Arrays) -> Labels:
    network, affines = Int8().calibration(exported("net", net, example), data)
    graph = lower(network, affines)
    frames = data["test_images"].astype(np.int64) - 128
    native = Predictor.build(graph, Ordinary().plan(graph, host()), host())
    ours = native.predict(frames.astype(np.int8)).reshape(len(frames), -1)
    assert (ours[:200] == graph.outputs(frames[:200]).reshape(200, -1)).all()
    parts = np.array_split(frames, -(-len(frames) // 500))
    theirs = np.concatenate([outputs(network, affines, graph, part) for part in parts])
    assert np.abs(ours - theirs).max() <= 2  # units
    with torch.no_grad():
        exact = torch.cat([net(part).argmax(1) for part in pixels(data).split(500)]).numpy()
    return Labels(ours.argmax(1), theirs.argmax(1), exact, data["test_labels"].astype(np.int64))


@pytest.mark.ci
def test_labels_are_those_of_pytorchs_quantized_network(residual: nn.Module, data: Arrays) -> None:
    found = labels(residual, Own().example(), data)
    assert (found.ours == found.theirs).mean() >= 0.995
    assert (found.ours == found.true).mean() > 0.9  # it learnt something
    assert (found.ours == found.exact).mean() >= 0.995


@pytest.mark.slow
def test_resnet8_on_cifar_10() -> None:
    """A few minutes of training."""
    if not all(is_good(home() / Cifar10.title / file.name, file.sha256) for file in Cifar10.files):
        pytest.skip("CIFAR-10 was not fetched on this machine yet")
    model, data = ResNet8(), Cifar10().arrays()
    recipe = config.instantiate(yaml.safe_load(Path("conf/train/float.yaml").read_text()))
    weights = replace(recipe, epochs=6).train(model, data, Run(1, 1)).weights
    found = labels(loaded(model.build(), weights).eval(), model.example(), data)
    assert (found.ours == found.theirs).mean() >= 0.995
    right, in_float = ((each == found.true).mean() for each in (found.ours, found.exact))
    assert in_float > 0.6 and abs(right - in_float) <= 0.005
