"""Quantization-aware training: it regains what calibration and the plan's rounded accumulators
lose, sees what they compute, always the same, and refuses what it cannot train."""

from collections.abc import Mapping
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
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.lower import lower
from pipeline.importers.torch_export import exported
from pipeline.models.network import state_arrays
from pipeline.plan.calibrate import calibrated
from pipeline.plan.interpret import interpret
from pipeline.quantize import int8_qat
from pipeline.quantize.accumulators import AccumulatedLayer, Accumulating, Accumulator, accumulators
from pipeline.quantize.int8 import Int8
from pipeline.quantize.int8_accumulators import Int8Accumulators
from pipeline.quantize.int8_qat import SETTLING_IMAGES, Int8Qat, Labelled
from pipeline.quantize.int8_rounded import Rounded, RoundedLayer
from pipeline.strategies.partial import Partial
from tests.importers.torch_modules import Of
from tests.quantize import nets
from tests.quantize.nets import Own, stored
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick

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
        (graph.evaluate(stored(data["test_images"])).argmax(1) == data["test_labels"]).mean()
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
    found = [graph.evaluate(stored(data["test_images"])) for graph in graphs[:2]]
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
    found = Int8().from_float(network, data).evaluate(stored(data["test_images"]))
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
    with pytest.raises(ThimbleError, match="accumulator_bits=12"):
        Int8Accumulators(accumulator_bits=12)  # type: ignore[arg-type]
    with pytest.raises(ThimbleError, match=r"quantize\.epochs="):
        Int8Accumulators(epochs=0)


def test_without_validation_training_images_choose(network: FloatGraph, data: Arrays) -> None:
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


def inverted() -> nn.Module:
    """An inverted residual, whose 64 channels 8-bit accumulators add one by one."""
    layers = nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 64, 1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.ReLU(), nn.Conv2d(64, 8, 1), nn.ReLU(),
        nn.AvgPool2d(3), nn.Flatten(), nn.Linear(8 * 4, 10),
    )  # fmt: skip
    return Of(lambda m, x: m.net(x / 255), net=layers)


@pytest.fixture(scope="module")
def summing(data: Arrays) -> FloatGraph:
    own = Own(input_shape=(12, 12, 1), network=inverted)
    return exported("net", nets.trained(own, data, 14), own.example())


@pytest.mark.parametrize(("bits", "channels"), quick(1, [(8, 6), (16, 6), (8, 1)], ci=1))
def test_training_sees_what_the_plan_computes(
    summing: FloatGraph, data: Arrays, bits: int, channels: int
) -> None:
    """To a few units of the output, as without accumulators; and the same steps."""
    strategy = Partial(accumulator_bits=bits, channels=channels)  # type: ignore[arg-type]
    float_graph, affines = Int8().calibration(summing, data)
    graph = Int8().from_float(summing, data)
    images = data["train_images"]
    chosen = np.unique(np.linspace(0, len(images) - 1, SETTLING_IMAGES).astype(np.int64))
    plan = calibrated(strategy.plan(graph, BOARD), graph, stored(images[chosen]))
    summed = accumulators(graph, strategy)
    assert list(summed.values()) == [Accumulator(bits, channels)]
    simulated = Accumulating(float_graph, affines, summed)
    train = Labelled(data["train_images"], data["train_labels"].astype(np.int64))
    simulated.settle(train.spread(SETTLING_IMAGES).frames())
    (layer,) = (each for each in simulated.layers if isinstance(each, AccumulatedLayer))
    (sums,) = (buffer for buffer in plan.buffers if buffer.role == "accumulator")
    assert sums.step > 1 and abs(layer.step - sums.step) <= 0.02 * sums.step
    images = data["test_images"][:20]
    with torch.no_grad():
        real = simulated(torch.from_numpy(images).float()).numpy()
    affine = affines[float_graph.output]
    found = [interpret(plan, graph, frame).output.reshape(-1) for frame in stored(images)]
    difference = np.abs(found - real / affine.scale - affine.zero_point)
    exact = np.abs(graph.evaluate(stored(images)) - real / affine.scale - affine.zero_point)
    assert difference.mean() < 0.6 and difference.max() <= 4
    if (bits, channels) == (8, 1):
        assert exact.mean() > 3 * difference.mean()


class Coarse(Int8Accumulators):
    """As if accumulators had 4 bits: 8 do little harm to so small a network."""

    def simulated(self, graph: FloatGraph, affines: Mapping[str, Affine]) -> Rounded:
        found = accumulators(lower(graph, affines), self.strategy)
        return Accumulating(graph, affines, {name: Accumulator(4, 1) for name in found})


@pytest.mark.ci
def test_it_regains_what_rounding_loses(summing: FloatGraph, data: Arrays) -> None:
    """Loss (cross-entropy) on the test images."""
    test = Labelled(data["test_images"], data["test_labels"].astype(np.int64))
    method = Coarse(channels=1, epochs=2, rate=0.005, examples=150)
    train, validation = method.labelled(summing, data)
    graph, affines = method.calibration(summing, data)
    tuned, losses = method.tuned(graph, affines, train, validation)

    def loss(network: Rounded) -> float:
        network.settle(train.spread(SETTLING_IMAGES).frames())
        with torch.no_grad():
            outputs = network(test.frames())
        return float(nn.functional.cross_entropy(outputs, torch.from_numpy(test.labels)))

    exact = loss(Rounded(graph, affines))
    rounded, regained = (loss(method.simulated(each, affines)) for each in (graph, tuned))
    assert losses[1] < losses[0]
    assert exact < 0.2 and rounded > exact + 0.2 and regained < 0.8 * rounded


def test_32_bits_are_int8_qat(summing: FloatGraph, data: Arrays) -> None:
    found = Int8Accumulators(accumulator_bits=32, epochs=1, examples=64).from_float(summing, data)
    assert found.hash == Int8Qat(epochs=1, examples=64).from_float(summing, data).hash


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
