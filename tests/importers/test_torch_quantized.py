"""Our int8 operators beside PyTorch's own quantized ones, on the same integers: within one unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine
from pipeline.importers.float_passes import simplified
from pipeline.importers.lower import PROBABILITY, lower
from pipeline.importers.torch_export import exported

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per")

INPUT, OUTPUT = Affine(0.037, -11), Affine(0.05, 6)
SHAPE = (6, 10, 9)
Q = torch.ops.quantized


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    """qnnpack computes exactly; x86's adds pairs in 16 bits on some processors."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "qnnpack"
    with torch.random.fork_rng():
        torch.manual_seed(1)
        yield
    torch.backends.quantized.engine = before


def unsigned(affine: Affine) -> tuple[float, int]:
    """PyTorch stores activations as uint8: 128 more."""
    return affine.scale, affine.zero_point + 128


def integers(*shape: int, seed: int = 0) -> IntArray:
    return np.random.default_rng(seed).integers(-128, 128, shape)


def to_torch(stored: IntArray, affine: Affine) -> torch.Tensor:
    """(n, h, w, c) int8 -> PyTorch's quantized (n, c, h, w)."""
    scale, zero = unsigned(affine)
    first = stored.transpose(0, 3, 1, 2) if stored.ndim == 4 else stored
    real = torch.from_numpy(affine.scale * (first - affine.zero_point))
    return torch.quantize_per_tensor(real.float(), scale, zero, torch.quint8)


def from_torch(found: torch.Tensor) -> IntArray:
    stored = found.int_repr().numpy().astype(np.int64) - 128
    return stored.transpose(0, 2, 3, 1) if stored.ndim == 4 else stored


def real(
    x: torch.Tensor, function: Callable[[torch.Tensor], torch.Tensor], to: Affine = OUTPUT
) -> torch.Tensor:
    """What PyTorch has no quantized operator for: of real numbers, rounded once."""
    return torch.quantize_per_tensor(function(x.dequantize()), *unsigned(to), torch.quint8)


def integer_graph(module: nn.Module, shape: tuple[int, ...], *others: tuple[str, Affine]) -> Graph:
    """``module`` with INPUT and OUTPUT, and what else ``others`` say."""
    network = simplified(exported("net", module, torch.zeros(1, *shape)))
    affines = dict.fromkeys(network.shapes, OUTPUT) | {network.input: INPUT} | dict(others)
    for node in network.nodes:
        if node.keeps and len(node.inputs) == 1:
            affines[node.output] = affines[node.inputs[0]]
        if isinstance(node, nodes.SoftmaxOver):
            affines[node.output] = PROBABILITY
    return lower(network, affines)


def compare(graph: Graph, theirs: Callable[[torch.Tensor], torch.Tensor], *shape: int) -> None:
    stored = integers(20, *shape)
    found = graph.outputs(stored)
    expected = from_torch(theirs(to_torch(stored, INPUT))).reshape(found.shape)
    difference = np.abs(found - expected)
    assert len(np.unique(found)) > 20  # not all of it clipped
    assert difference.max() <= 1 and (difference > 0).mean() < 0.02


def weights(graph: Graph, layer: nn.Conv2d | nn.Linear) -> torch.Tensor:
    """The layer's weights with our scales for each output channel."""
    name = next(name for name in graph.constants if name.endswith(".weight"))
    steps = torch.tensor(graph.tensors[name].scale, dtype=torch.float64)
    zeros = torch.zeros(len(steps), dtype=torch.int64)
    return torch.quantize_per_channel(layer.weight.detach(), steps, zeros, 0, torch.qint8)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(6, 8, 3, padding=1),
        nn.Conv2d(6, 8, (3, 2), stride=2, padding=(1, 0)),
        nn.Conv2d(6, 8, 3, dilation=2),
        nn.Conv2d(6, 6, 3, groups=6, padding=1),
        nn.Conv2d(6, 12, 3, groups=6),
        nn.Conv2d(6, 8, 1, groups=2),
    ],
    ids=lambda item: str(item) if isinstance(item, nn.Module) else "",
)
def test_convolution(layer: nn.Conv2d, relu: bool) -> None:
    module = nn.Sequential(layer, nn.ReLU()) if relu else layer
    graph = integer_graph(module.eval(), SHAPE)
    packed = Q.conv2d_prepack(
        weights(graph, layer), layer.bias.detach(), layer.stride, layer.padding, layer.dilation,
        layer.groups,
    )  # fmt: skip
    run = Q.conv2d_relu if relu else Q.conv2d
    compare(graph, lambda x: run(x, packed, *unsigned(OUTPUT)), 10, 9, 6)


@pytest.mark.parametrize("relu", [False, True])
def test_linear(relu: bool) -> None:
    layer = nn.Linear(50, 9)
    graph = integer_graph(nn.Sequential(layer, nn.ReLU()) if relu else layer, (50,))
    packed = Q.linear_prepack(weights(graph, layer), layer.bias.detach())
    run = Q.linear_relu if relu else Q.linear
    compare(graph, lambda x: run(x, packed, *unsigned(OUTPUT)), 50)


class Two(nn.Module):
    """``combine(x, conv(x))``; the convolution is replaced by its own integers in the tests."""

    def __init__(self, combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.conv, self.combine = nn.Conv2d(6, 6, 1), combine

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.combine(x, self.conv(x))


@pytest.mark.parametrize(
    ("combine", "theirs"),
    [
        (lambda a, b: a + b, lambda a, b: Q.add(a, b, 0.08, 131)),
        (lambda a, b: F.relu(a + b), lambda a, b: Q.add_relu(a, b, 0.08, 131)),
        (lambda a, b: a * b, lambda a, b: Q.mul(a, b, 0.08, 131)),
        (lambda a, b: torch.cat([a, b], 1), lambda a, b: Q.cat([a, b], 1, 0.08, 131)),
    ],
    ids=["add", "add, relu", "multiply", "concatenate"],
)
def test_two_inputs(
    combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    theirs: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    network = simplified(exported("net", Two(combine), torch.zeros(1, *SHAPE)))
    second = network.nodes[0].output
    other, output = Affine(0.021, 30), Affine(0.08, 3)
    affines = {network.input: INPUT, second: other, network.output: output}
    graph = lower(network, affines)
    values = graph.run(integers(20, 10, 9, 6))
    a, b = to_torch(values[graph.input], INPUT), to_torch(values[second], other)
    difference = np.abs(values[graph.output] - from_torch(theirs(a, b)))
    assert difference.max() <= 1 and (difference > 0).mean() < 0.05


@pytest.mark.parametrize(
    ("module", "theirs"),
    [
        (nn.MaxPool2d(2), lambda x: F.max_pool2d(x, 2)),
        (nn.MaxPool2d(3, 2, 1), lambda x: F.max_pool2d(x, 3, 2, 1)),
        (nn.AvgPool2d(2), lambda x: F.avg_pool2d(x, 2)),
        (
            nn.AvgPool2d(3, 2, 1, count_include_pad=False),  # PyTorch's own is wrong in qnnpack
            lambda x: real(x, lambda y: F.avg_pool2d(y, 3, 2, 1, count_include_pad=False), INPUT),
        ),
        (nn.AdaptiveAvgPool2d((5, 3)), lambda x: F.adaptive_avg_pool2d(x, (5, 3))),
    ],
    ids=lambda item: str(item) if isinstance(item, nn.Module) else "",
)
def test_pools(module: nn.Module, theirs: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """PyTorch rounds halves of an average to even, TFLite and we away from zero."""
    graph = integer_graph(module, SHAPE)
    stored = integers(20, 10, 9, 6)
    difference = graph.outputs(stored) - from_torch(theirs(to_torch(stored, INPUT)))
    assert np.abs(difference).max() <= 1
    if isinstance(module, nn.MaxPool2d):
        assert not difference.any()


def test_global_mean() -> None:
    graph = integer_graph(nn.AdaptiveAvgPool2d(1), SHAPE, ("input", INPUT))
    stored = integers(20, 10, 9, 6)
    expected = real(to_torch(stored, INPUT), lambda x: x.mean((2, 3)))
    found = graph.outputs(stored).reshape(20, 6)
    assert np.abs(found - from_torch(expected)).max() <= 1


@pytest.mark.parametrize(
    ("module", "theirs"),
    [
        (nn.Sigmoid(), lambda x: real(x, torch.sigmoid)),  # PyTorch's own has one fixed scale
        (nn.Tanh(), lambda x: real(x, torch.tanh)),
        (nn.Hardswish(), lambda x: Q.hardswish(x, *unsigned(OUTPUT))),
        (nn.LeakyReLU(0.1), lambda x: Q.leaky_relu(x, 0.1, False, *unsigned(OUTPUT))),
        (nn.ELU(0.9), lambda x: Q.elu(x, *unsigned(OUTPUT), 0.9)),
        (nn.ReLU6(), lambda x: real(x, F.relu6)),
        (nn.GELU(), lambda x: real(x, F.gelu)),
    ],
    ids=lambda item: str(item) if isinstance(item, nn.Module) else "",
)
def test_functions(module: nn.Module, theirs: Callable[[torch.Tensor], torch.Tensor]) -> None:
    graph = integer_graph(module, SHAPE)
    stored = np.arange(-128, 128).repeat(4)[: 10 * 9 * 6].reshape(1, 10, 9, 6)
    stored = np.concatenate([stored, -1 - stored])
    difference = np.abs(graph.outputs(stored) - from_torch(theirs(to_torch(stored, INPUT))))
    assert difference.max() <= 1 and (difference > 0).mean() < 0.02


def test_softmax() -> None:
    graph = integer_graph(nn.Softmax(1), (10,))
    stored = integers(200, 10)
    scale, zero = unsigned(PROBABILITY)
    theirs = Q.softmax(to_torch(stored, INPUT), 1, scale, zero)
    assert np.abs(graph.outputs(stored) - from_torch(theirs)).max() <= 1


def test_norm_alone() -> None:
    """A depthwise convolution of 1x1 has its own weights' rounding: a unit of theirs more."""
    norm = nn.BatchNorm2d(6).eval()
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 1.5)
    graph = integer_graph(norm, SHAPE)
    stored = integers(20, 10, 9, 6)
    theirs = Q.batch_norm2d(
        to_torch(stored, INPUT), norm.weight.detach(), norm.bias.detach(), norm.running_mean,
        norm.running_var, norm.eps, *unsigned(OUTPUT),
    )  # fmt: skip
    assert np.abs(graph.outputs(stored) - from_torch(theirs)).max() <= 1
