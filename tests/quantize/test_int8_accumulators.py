"""Training with the plan's rounded accumulators: it sees what the plan computes, and regains what
rounding loses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.lower import lower
from pipeline.importers.torch_export import exported
from pipeline.plan.calibrate import calibrated
from pipeline.plan.interpret import interpret
from pipeline.plan.vocabulary import Plan
from pipeline.quantize.accumulators import AccumulatedLayer, Accumulating, Accumulator, accumulators
from pipeline.quantize.int8 import Int8
from pipeline.quantize.int8_accumulators import Int8Accumulators
from pipeline.quantize.int8_qat import SETTLING_IMAGES, Int8Qat, Labelled
from pipeline.quantize.int8_rounded import Rounded
from pipeline.strategies.partial import Partial
from tests.importers.torch_modules import Of
from tests.quantize.nets import Own, stored, trained
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick


def net() -> nn.Module:
    """An inverted residual, whose 64 channels 8-bit accumulators add one by one."""
    layers = nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 64, 1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.ReLU(), nn.Conv2d(64, 8, 1), nn.ReLU(),
        nn.AvgPool2d(3), nn.Flatten(), nn.Linear(8 * 4, 10),
    )  # fmt: skip
    return Of(lambda m, x: m.net(x / 255), net=layers)


@pytest.fixture(scope="module")
def data() -> Arrays:
    return Synthetic(train=600, validation=200, test=300, shape=(12, 12, 1)).arrays()


@pytest.fixture(scope="module")
def network(data: Arrays) -> FloatGraph:
    own = Own(input_shape=(12, 12, 1), network=net)
    return exported("net", trained(own, data, 14), own.example())


def planned(graph: Graph, data: Arrays, strategy: Partial) -> Plan:
    images = data["train_images"]
    chosen = np.unique(np.linspace(0, len(images) - 1, SETTLING_IMAGES).astype(np.int64))
    return calibrated(strategy.plan(graph, BOARD), graph, stored(images[chosen]))


def outputs(plan: Plan, graph: Graph, images: np.ndarray) -> np.ndarray:
    return np.stack([interpret(plan, graph, frame).output.reshape(-1) for frame in stored(images)])


@pytest.mark.parametrize(("bits", "channels"), quick(1, [(8, 6), (16, 6), (8, 1)], ci=1))
def test_training_sees_what_the_plan_computes(
    network: FloatGraph, data: Arrays, bits: int, channels: int
) -> None:
    """To a few units of the output, as without accumulators; and the same steps."""
    strategy = Partial(accumulator_bits=bits, channels=channels)  # type: ignore[arg-type]
    float_graph, affines = Int8().calibration(network, data)
    graph = Int8().from_float(network, data)
    plan = planned(graph, data, strategy)
    found = accumulators(graph, strategy)
    assert list(found.values()) == [Accumulator(bits, channels)]
    simulated = Accumulating(float_graph, affines, found)
    train = Labelled(data["train_images"], data["train_labels"].astype(np.int64))
    simulated.settle(train.spread(SETTLING_IMAGES).frames())
    (layer,) = (each for each in simulated.layers if isinstance(each, AccumulatedLayer))
    (sums,) = (buffer for buffer in plan.buffers if buffer.role == "accumulator")
    assert sums.step > 1 and abs(layer.step - sums.step) <= 0.02 * sums.step
    images = data["test_images"][:20]
    with torch.no_grad():
        real = simulated(torch.from_numpy(images).float()).numpy()
    affine = affines[float_graph.output]
    difference = np.abs(outputs(plan, graph, images) - real / affine.scale - affine.zero_point)
    exact = np.abs(graph.outputs(stored(images)) - real / affine.scale - affine.zero_point)
    assert difference.mean() < 0.6 and difference.max() <= 4
    if (bits, channels) == (8, 1):
        assert exact.mean() > 3 * difference.mean()


class Coarse(Int8Accumulators):
    """As if accumulators had 4 bits: 8 do little harm to so small a network."""

    def simulated(self, graph: FloatGraph, affines: Mapping[str, Affine]) -> Rounded:
        found = accumulators(lower(graph, affines), self.strategy)
        return Accumulating(graph, affines, {name: Accumulator(4, 1) for name in found})


@pytest.mark.ci
def test_it_regains_what_rounding_loses(network: FloatGraph, data: Arrays) -> None:
    """Loss (cross-entropy) on the test images."""
    test = Labelled(data["test_images"], data["test_labels"].astype(np.int64))
    method = Coarse(channels=1, epochs=2, rate=0.005, examples=150)
    train, validation = method.labelled(network, data)
    graph, affines = method.calibration(network, data)
    tuned, losses = method.tuned(graph, affines, train, validation)

    def loss(network: Rounded) -> float:
        network.settle(train.spread(SETTLING_IMAGES).frames())
        with torch.no_grad():
            outputs = network(test.frames())
        return float(nn.functional.cross_entropy(outputs, torch.from_numpy(test.labels)))

    exact, rounded, regained = (
        loss(Rounded(graph, affines)),
        loss(method.simulated(graph, affines)),
        loss(method.simulated(tuned, affines)),
    )
    assert losses[1] < losses[0]
    assert exact < 0.2 and rounded > exact + 0.2 and regained < 0.8 * rounded


def test_32_bits_are_int8_qat(network: FloatGraph, data: Arrays) -> None:
    found = Int8Accumulators(accumulator_bits=32, epochs=1, examples=64).from_float(network, data)
    assert found.hash == Int8Qat(epochs=1, examples=64).from_float(network, data).hash


def layer(groups: int = 1) -> AccumulatedLayer:
    """Two output channels of four or, grouped, two input channels, all weights 1."""
    node = nodes.Convolution(
        name="y", inputs=("x",), output="y", where="y",
        weights=np.ones((2, 1, 1, 4 // groups)), bias=np.zeros(2), groups=groups,
    )  # fmt: skip
    affines = {"x": Affine(1.0, 0), "y": Affine(1.0, 0)}
    return AccumulatedLayer(node, affines, Accumulator(8, 3))


@pytest.mark.parametrize("groups", [1, 2])
def test_contributions_by_hand(groups: int) -> None:
    """Channels 0 to 2, then channel 3; a unit of the sum is a 127th of a weight."""
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).reshape(1, 1, 1, 4)
    made = layer(groups)
    weights, _, steps = made.rounded()
    first, second = (each.flatten().tolist() for each in made.contributions(x, weights, steps))
    expected = ([6, 6], [4, 4]) if groups == 1 else ([3, 3], [0, 4])
    assert (first, second) == tuple([127 * n for n in each] for each in expected)


def test_what_saturates_has_no_gradient() -> None:
    """Steps of 4 units: 127 x and half away from zero; 20 x is beyond 127 steps."""
    made = layer()
    made.step = 4
    x = torch.tensor([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [20.0, 0, 0, 0]]).reshape(3, 1, 1, 4)
    x.requires_grad_()
    y = made(x)
    assert (y[:, 0, 0, 0] * 127 / 4).round().tolist() == [32, -32, 127]
    y[..., 0].sum().backward()
    assert x.grad is not None
    assert x.grad[0].flatten()[:3].tolist() == pytest.approx([1, 1, 1])
    assert x.grad[2].abs().max() == 0


def test_mistakes_are_one_line() -> None:
    with pytest.raises(ThimbleError, match="accumulator_bits=12"):
        Int8Accumulators(accumulator_bits=12)  # type: ignore[arg-type]
    with pytest.raises(ThimbleError, match=r"quantize\.epochs="):
        Int8Accumulators(epochs=0)
