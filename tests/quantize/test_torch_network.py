"""From torch.export to C: a residual network's labels are those of a whole network of PyTorch's own
quantized operators at the same scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
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
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph, Node
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


Q = torch.ops.quantized
RELU = (0.0, inf)


@contextmanager
def qnnpack() -> Iterator[None]:
    """It computes exactly; x86's adds pairs in 16 bits on some processors."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "qnnpack"
    try:
        yield
    finally:
        torch.backends.quantized.engine = before


def outputs(
    source: FloatGraph, affines: Mapping[str, Affine], lowered: Graph, frames: IntArray
) -> IntArray:
    """(n, h, w, c) stored integers -> (n, classes): what PyTorch computes.

    Args:
        source: what was lowered, with the biases that the integer graph has.
        lowered: whose weights' scales are taken.
    """
    real = torch.from_numpy(frames - affines[source.input].zero_point).permute(0, 3, 1, 2)
    values = {source.input: stored(affines[source.input].scale * real, affines[source.input])}
    with qnnpack():
        for node in source.nodes:
            inputs = [values[name] for name in node.inputs]
            values[node.output] = computed(node, inputs, affines[node.output], lowered)
    return values[source.output].int_repr().flatten(1).numpy().astype(np.int64) - 128


def stored(real: torch.Tensor, affine: Affine) -> torch.Tensor:
    """PyTorch stores activations as uint8: 128 more."""
    return torch.quantize_per_tensor(
        real.float(), affine.scale, affine.zero_point + 128, torch.quint8
    )


def computed(node: Node, inputs: list[torch.Tensor], to: Affine, lowered: Graph) -> torch.Tensor:
    assert node.clip in (None, RELU), "PyTorch fuses nothing else"
    relu, ends = node.clip == RELU, (to.scale, to.zero_point + 128)
    result: torch.Tensor
    match node:
        case nodes.Convolution():
            pads = node.padding
            assert pads[0] == pads[1] and pads[2] == pads[3]
            packed = Q.conv2d_prepack(
                weights(node, lowered).contiguous(), torch.from_numpy(node.bias).float(),
                node.stride, (pads[0], pads[2]), node.dilation, node.groups,
            )  # fmt: skip
            result = (Q.conv2d_relu if relu else Q.conv2d)(inputs[0], packed, *ends)
        case nodes.Linear():
            flat = inputs[0].permute(0, 2, 3, 1) if inputs[0].ndim == 4 else inputs[0]
            packed = Q.linear_prepack(weights(node, lowered), torch.from_numpy(node.bias).float())
            run = Q.linear_relu if relu else Q.linear
            result = run(flat.flatten(1).contiguous(), packed, *ends)
        case nodes.Sum():
            result = (Q.add_relu if relu else Q.add)(*inputs, *ends)
        case nodes.MaxPool():
            result = torch.nn.functional.max_pool2d(inputs[0], node.kernel, node.stride)
        case nodes.GlobalMean():  # PyTorch's own keeps the input's scale
            result = stored(inputs[0].dequantize().mean((2, 3), keepdim=True), to)
        case nodes.Reshaped():
            result = inputs[0]
        case _:
            raise NotImplementedError(type(node).__name__)
    return result


def weights(node: nodes.Weighted, lowered: Graph) -> torch.Tensor:
    """(c_out, c_in, kh, kw) or (c_out, c_in), a scale for each output channel."""
    steps = torch.tensor(lowered.tensors[f"{node.name}.weight"].scale, dtype=torch.float64)
    real = torch.from_numpy(node.weights).float()
    shaped = real.permute(0, 3, 1, 2) if real.ndim == 4 and isinstance(node, nodes.Convolution) \
        else real.flatten(1)  # fmt: skip
    zeros = torch.zeros(len(steps), dtype=torch.int64)
    return torch.quantize_per_channel(shaped, steps, zeros, 0, torch.qint8)
