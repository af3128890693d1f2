"""Quantization-aware training: it regains what calibration loses, always the same, and refuses
what it cannot train."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.datasets.nothing import Nothing
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.lower import lower
from pipeline.importers.torch_export import exported
from pipeline.models.network import state_arrays
from pipeline.quantize import int8_qat
from pipeline.quantize.int8 import Int8
from pipeline.quantize.int8_qat import Int8Qat
from pipeline.quantize.int8_rounded import Rounded, RoundedLayer
from tests.importers.onnx_models import N, imported, model, parsed
from tests.importers.torch_modules import Of
from tests.quantize import nets
from tests.quantize.nets import Own, stored

COARSE = {"observer": "percentile", "percentile": 52.0}
"""Ranges so narrow that large activations are clipped."""


def net() -> nn.Module:
    """Raw pixels, batch norm, depthwise, residual."""

    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = m.stem(x / 255)
        return m.head(x + m.body(x))

    stem = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
    depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
    body = nn.Sequential(depthwise, nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 1))
    return Of(forward, stem=stem, body=body, head=nn.Sequential(nn.Flatten(), nn.Linear(288, 10)))


OWN = Own(input_shape=(12, 12, 1), network=net)


@pytest.fixture(scope="module")
def data() -> Arrays:
    return Synthetic(train=600, validation=200, test=500, shape=(12, 12, 1)).arrays()


@pytest.fixture(scope="module")
def trained(data: Arrays) -> nn.Module:
    return nets.trained(OWN, data, 4)


@pytest.fixture
def network(trained: nn.Module) -> FloatGraph:
    return exported("net", trained, torch.zeros(1, 1, 12, 12))


def accuracy(graph: Graph, data: Arrays) -> float:
    return float(
        (graph.outputs(stored(data["test_images"])).argmax(1) == data["test_labels"]).mean()
    )


@pytest.mark.ci
def test_it_regains_what_coarse_ranges_lose(trained: nn.Module, data: Arrays) -> None:
    weights = state_arrays(trained)
    calibrated = Int8(**COARSE).graph("net", OWN, weights, data)
    tuned = Int8Qat(**COARSE, rate=0.01).graph("net", OWN, weights, data)
    assert accuracy(calibrated, data) < 0.9
    assert accuracy(tuned, data) > accuracy(calibrated, data) + 0.05
    assert {str(tensor.dtype) for tensor in tuned.tensors.values()} == {"int8", "int32"}
    for name, tensor in calibrated.tensors.items():  # activations' ranges stay
        if name not in calibrated.constants:
            assert tuned.tensors[name] == tensor


@pytest.mark.ci
def test_the_loss_falls(network: FloatGraph, data: Arrays) -> None:
    method = Int8Qat(observer="percentile", percentile=80, rate=0.005, epochs=4)
    graph, losses = method.tuned(
        *method.calibration(network, data), *method.labelled(network, data)
    )  # fmt: skip
    assert len(losses) == 4 and losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0]
    assert [type(node) for node in graph.nodes] == [
        type(node) for node in method.calibration(network, data)[0].nodes
    ]


@pytest.mark.ci
def test_equal_seeds_give_equal_networks(network: FloatGraph, data: Arrays) -> None:
    graphs = [Int8Qat(epochs=1, seed=seed).from_float(network, data) for seed in (0, 0, 1)]
    assert graphs[0].hash == graphs[1].hash != graphs[2].hash
    found = [graph.outputs(stored(data["test_images"])) for graph in graphs[:2]]
    assert (found[0] == found[1]).all()
    assert graphs[0].hash != Int8().from_float(network, data).hash
    few = Int8Qat(epochs=1, examples=64).from_float(network, data)
    assert few.hash != graphs[0].hash


@pytest.mark.ci
def test_training_sees_what_the_integers_compute(network: FloatGraph, data: Arrays) -> None:
    """To a few units of the output, which come from fixed-point roundings in each operator."""
    graph, affines = Int8Qat().calibration(network, data)
    with torch.no_grad():
        real = Rounded(graph, affines)(torch.from_numpy(data["test_images"]).float()).numpy()
    affine = affines[graph.output]
    expected = np.rint(real / affine.scale) + affine.zero_point
    found = Int8().from_float(network, data).outputs(stored(data["test_images"]))
    difference = np.abs(found.reshape(expected.shape) - expected)
    assert difference.max() <= 3 and difference.mean() < 0.3


def test_no_factor_is_one_or_more(network: FloatGraph, data: Arrays) -> None:
    """Fast kernels have no shift to the left: neither a channel of large weights, whose sums are
    coarser than its outputs, nor what training makes of it asks for one."""
    first = next(node for node in network.nodes if isinstance(node, nodes.Convolution))
    large = replace(first, weights=first.weights * 1e4, clip=(0.0, 6.0))
    network = replace(network, nodes=tuple(large if n is first else n for n in network.nodes))
    graph, affines = Int8(images=32).calibration(network, data)
    rounded = Rounded(graph, affines)
    with torch.no_grad():
        for layer in rounded.layers:
            if isinstance(layer, RoundedLayer):
                layer.changes[0].fill_(0.5)
    for float_graph in (graph, rounded.graph()):
        integers = lower(float_graph, affines)
        shifts = [
            s for op in integers.operators if isinstance(op, Conv2d) for s in op.requant.shifts
        ]
        assert shifts and max(shifts) <= 0


def test_pruned_weights_stay_zero(trained: nn.Module, data: Arrays) -> None:
    weights = state_arrays(trained)
    pruned = np.abs(weights["head.1.weight"]) < 0.05
    weights["head.1.weight"] = np.where(pruned, 0, weights["head.1.weight"])
    graph = Int8Qat(epochs=1, rate=0.01).graph("net", OWN, weights, data)
    before = Int8().graph("net", OWN, weights, data)
    names = [name for name in graph.constants if graph.constants[name].size == pruned.size]
    assert len(names) == 1 and 100 < pruned.sum() < pruned.size
    assert (graph.constants[names[0]] != before.constants[names[0]]).any()
    assert (graph.constants[names[0]] == 0).sum() >= pruned.sum()


@pytest.mark.ci
def test_what_makes_it_worse_is_not_taken(network: FloatGraph, data: Arrays) -> None:
    tuned = Int8Qat(rate=100.0, epochs=1).from_float(network, data)
    assert tuned.hash == Int8().from_float(network, data).hash


@pytest.mark.ci
def test_onnx_with_softmax_learns(data: Arrays) -> None:
    """Random weights; the scores before the softmax are what is trained."""
    random = np.random.default_rng(0)
    made = model(
        [
            N("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
            N("Relu", ["c"], ["r"]),
            N("Flatten", ["r"], ["f"]),
            N("Gemm", ["f", "v", "u"], ["s"]),
            N("Softmax", ["s"], ["y"]),
        ],
        (1, 1, 12, 12),
        {
            "w": random.normal(0, 0.4, (8, 1, 3, 3)).astype(np.float32),
            "b": np.zeros(8, np.float32),
            "v": random.normal(0, 0.1, (288, 10)).astype(np.float32),
            "u": np.zeros(10, np.float32),
        },
    )
    network = imported("net", parsed(made), (0.0, 1.0))
    assert isinstance(network.nodes[-1], nodes.SoftmaxOver)
    tuned = Int8Qat(rate=0.03, epochs=4).from_float(network, data)
    assert accuracy(Int8().from_float(network, data), data) < 0.4
    assert accuracy(tuned, data) > 0.7


def test_mistakes_are_one_line(network: FloatGraph, data: Arrays) -> None:
    for missing in (None, {}, Nothing().arrays(), {"train_images": data["train_images"]}):
        with pytest.raises(ThimbleError, match=r"trains on labelled images.*quantize=int8$"):
            Int8Qat().from_float(network, missing)
    many = data | {"train_labels": data["train_labels"] + 5}
    with pytest.raises(ThimbleError, match=r"output is 10; .* 15 classes"):
        Int8Qat().from_float(network, many)
    other = Synthetic(train=20, validation=20, test=20).arrays()
    with pytest.raises(ThimbleError, match="28x28x1"):
        Int8Qat().from_float(network, other)
    for mistake in ({"epochs": 0}, {"batch": 0}, {"rate": 0.0}, {"examples": -1}, {"images": 0}):
        with pytest.raises(ThimbleError, match=rf"quantize\.{next(iter(mistake))}="):
            Int8Qat(**mistake)


def test_without_validation_images_training_images_choose(
    network: FloatGraph, data: Arrays
) -> None:
    alone = {name: values for name, values in data.items() if name.startswith("train")}
    train, validation = Int8Qat(examples=50).labelled(network, alone)
    assert len(train) == 50 and validation is train


@pytest.mark.ci
def test_a_loss_that_diverges_is_an_error(
    network: FloatGraph, data: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding saturates what grows: no rate alone makes a loss that is not finite."""

    def infinite(logits: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return logits.sum() * torch.inf

    monkeypatch.setattr(int8_qat, "cross_entropy", infinite)
    with pytest.raises(ThimbleError, match=r"diverged in epoch 1 of 1 .*; lower quantize\.rate$"):
        Int8Qat(epochs=1).from_float(network, data)
