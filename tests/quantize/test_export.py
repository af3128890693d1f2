"""The float simulation and the integer graph agree in every logit and every activation."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import ByteConv2d, ResidualUnit
from pipeline.quantize.export import to_graph
from pipeline.quantize.simulated import QuantizedLayer, QuantizedNetwork, QuantizedUnit
from tests.quantize.nets import chain, images, shaken

Shape = tuple[int, int, int]


def assert_equal(network: QuantizedNetwork, shape: Shape, count: int, seed: int) -> Graph:
    """All activations and logits of ``count`` images, integer for integer."""
    graph = to_graph("net", network, shape)
    pixels = images(count, shape, seed)
    found = graph.run(pixels.permute(0, 2, 3, 1).numpy().astype(np.int64))
    x, exponent = network.pool(pixels), torch.tensor(-4.0)
    by_operator = graph.tensors | {op.name: graph.tensors[op.output] for op in graph.operators}
    with torch.no_grad():
        for name, layer in network.layers.items():
            if isinstance(layer, (QuantizedLayer, QuantizedUnit)):
                x, exponent = layer(x, exponent)
            else:
                x = layer(x)
            if name not in by_operator:
                continue
            tensor = by_operator[name]
            real = x.permute(0, 2, 3, 1) if x.ndim == 4 else x
            expected = real.double().numpy() / tensor.scale[0]
            assert (found[tensor.name] == expected).all(), name
    return graph


@pytest.mark.parametrize("seed", range(8))
def test_the_published_network_is_exact(seed: int) -> None:
    shape = (28, 28, 1)
    assert_equal(shaken(Mnist2kb().build(), seed, shape), shape, 500, seed + 100)


NETWORKS: dict[str, tuple[Shape, nn.Sequential]] = {
    "strided, padded": (
        (16, 20, 3),
        chain(
            nn.Conv2d(3, 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(4, 6, (1, 3), padding=(0, 1)),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(6 * 4 * 5, 5),
        ),
    ),
    "depthwise, dilated": (
        (24, 24, 2),
        chain(
            nn.Conv2d(2, 4, 3, groups=2),
            nn.ReLU(),
            nn.Conv2d(4, 4, 3, groups=4, dilation=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
            nn.Flatten(),
            nn.Linear(4 * 2 * 2, 5),
        ),
    ),
    "residual units, the second of other channels": (
        (16, 20, 3),
        chain(
            nn.Conv2d(3, 6, 3),
            nn.ReLU(),
            ResidualUnit(6, 6),
            ResidualUnit(6, 9),
            nn.Flatten(),
            nn.Linear(9 * 6 * 10, 5),
            pool=1,
        ),
    ),
    "bytes among nibbles, depthwise": (
        (28, 24, 1),
        chain(
            nn.Conv2d(1, 4, 3),
            nn.ReLU(),
            ByteConv2d(4, 4, 3, groups=4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 2),
            nn.ReLU(),
            ByteConv2d(6, 3, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3 * 4 * 3, 5),
        ),
    ),
    "no pooling, hidden dense layer": (
        (8, 8, 1),
        chain(
            nn.Conv2d(1, 3, 5),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3 * 4 * 4, 9),
            nn.ReLU(),
            nn.Linear(9, 4),
            pool=1,
        ),
    ),
    "dense only": ((16, 16, 1), chain(nn.Flatten(), nn.Linear(16, 3), pool=4)),
    "convolution gives the logits": (
        (8, 8, 1),
        chain(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 2)),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", range(3))
def test_other_networks_are_exact(name: str, seed: int) -> None:
    shape, network = NETWORKS[name]
    assert_equal(shaken(network, seed, shape), shape, 100, seed)


def test_names_and_sizes_of_the_published_network(tmp_path: Path) -> None:
    graph = to_graph("mnist_2kb", shaken(Mnist2kb().build(), 0, (28, 28, 1)), (28, 28, 1))
    activations = [name for name in graph.tensors if name not in graph.constants]
    assert activations == ["image", "pooled", "conv1", "conv2", "conv3", "pool", "logits"]
    names = [op.name for op in graph.operators]
    assert names == ["avg", "conv1", "conv2", "conv3", "maxpool", "dense"]
    assert graph.macs == 94_928
    assert graph.weight_bytes == 1512.5
    assert {str(graph.tensors[name].dtype) for name in activations[1:-1]} == {"uint4"}
    assert str(graph.tensors["logits"].dtype) == "int16"
    graph.save(tmp_path)
    assert Graph.load(tmp_path).hash == graph.hash


def test_weights_that_do_not_fit_the_image_are_one_line() -> None:
    network = QuantizedNetwork(Mnist2kb().build())
    with pytest.raises(ThimbleError, match="dense has 176 inputs, but pool has 275"):
        to_graph("net", network, (32, 32, 1))


def test_sums_too_large_for_16_bits_are_one_line() -> None:
    wide = chain(nn.Flatten(), nn.Linear(14 * 14 * 3, 4))
    with torch.no_grad():
        wide.get_submodule("dense1").weight.fill_(1.0)
    network = QuantizedNetwork(wide)
    network.calibrate(network.pool(images(10, (28, 28, 3), 0)))
    with pytest.raises(ThimbleError, match="dense1 sums 588 products") as caught:
        to_graph("net", network, (28, 28, 3))
    assert "\n" not in str(caught.value)
