"""Networks of 4 bits: which layers have integers, their file, and the float simulation, which the
integer graph equals in every logit and every activation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.artifacts import read_npz, write_npz
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.models.google12 import Google12
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import ByteConv2d, Model, ResidualUnit, state_arrays
from pipeline.quantize.export import to_graph
from pipeline.quantize.int4 import Int4
from pipeline.quantize.layers import check_layers
from pipeline.quantize.parameters import from_arrays, to_arrays
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


RELU, FLAT, CONV = nn.ReLU, nn.Flatten, nn.Conv2d
NETWORKS: dict[str, tuple[Shape, nn.Sequential]] = {
    "strided, padded": ((16, 20, 3), chain(
        CONV(3, 4, 3, stride=2, padding=1), RELU(), CONV(4, 6, (1, 3), padding=(0, 1)), RELU(),
        FLAT(), nn.Linear(6 * 4 * 5, 5))),
    "depthwise, dilated": ((24, 24, 2), chain(
        CONV(2, 4, 3, groups=2), RELU(), CONV(4, 4, 3, groups=4, dilation=2), RELU(),
        nn.MaxPool2d(3, stride=2), FLAT(), nn.Linear(4 * 2 * 2, 5))),
    "residual units, the second of other channels": ((16, 20, 3), chain(
        CONV(3, 6, 3), RELU(), ResidualUnit(6, 6), ResidualUnit(6, 9), FLAT(),
        nn.Linear(9 * 6 * 10, 5), pool=1)),
    "bytes among nibbles, depthwise": ((28, 24, 1), chain(
        CONV(1, 4, 3), RELU(), ByteConv2d(4, 4, 3, groups=4), RELU(), nn.MaxPool2d(2),
        CONV(4, 6, 2), RELU(), ByteConv2d(6, 3, 1), RELU(), FLAT(), nn.Linear(3 * 4 * 3, 5))),
    "no pooling, hidden dense layer": ((8, 8, 1), chain(
        CONV(1, 3, 5), RELU(), FLAT(), nn.Linear(3 * 4 * 4, 9), RELU(), nn.Linear(9, 4), pool=1)),
    "dense only": ((16, 16, 1), chain(FLAT(), nn.Linear(16, 3), pool=4)),
    "convolution gives the logits": ((8, 8, 1), chain(CONV(1, 4, 3), RELU(), CONV(4, 3, 2))),
}  # fmt: skip


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


SHAPE = (28, 28, 1)


def test_parameters_become_a_graph_of_their_size() -> None:
    small = shaken(Mnist2kb(channels=(2, 3, 4)).build(), 0, SHAPE)
    graph = Int4().graph("mine", Mnist2kb(), to_arrays(small))
    assert graph.name == "mine"
    assert graph.tensors[graph.input].units == (1, 0)  # pixels of 0…255, as the model takes them
    assert [graph.tensors[name].shape[-1] for name in ("conv1", "conv2", "conv3")] == [2, 3, 4]
    pixels = images(20, SHAPE, 1)
    logits = graph.outputs(pixels.permute(0, 2, 3, 1).numpy().astype(np.int64))
    expected = small(small.pool(pixels)).detach().double().numpy()
    assert (logits * graph.tensors["logits"].scale[0] == expected).all()


@pytest.mark.parametrize("images", [0, 50])
def test_weights_without_thresholds_get_the_best_ones(images: int) -> None:
    """Of any training, on images or on pictures of nothing; the same ones again."""
    torch.manual_seed(4)
    model = Mnist2kb()
    weights = state_arrays(model.build())
    pixels = np.random.default_rng(0).integers(0, 256, (images, 28, 28, 1), np.uint8)
    first, again = (Int4().graph("a", model, weights, {"train_images": pixels}) for _ in range(2))
    assert first.hash == again.hash
    torch.random.manual_seed(9)
    assert Int4().graph("a", model, weights, {"train_images": pixels}).hash == first.hash
    for name, values in first.constants.items():
        if name.endswith("weight"):
            assert values.min() >= -8 and values.max() <= 7 and len(np.unique(values)) > 8
    with pytest.raises(ThimbleError, match="belong to another model"):
        Int4().graph("a", model, {"conv1.weight": weights["conv1.weight"]})


WITH_UNITS = Google12(input_shape=(28, 28, 1), joined=2, channels=(3, 4), units=(4,))


@pytest.mark.parametrize("model", [Mnist2kb(), WITH_UNITS], ids=["chain", "units"])
def test_a_network_survives_its_file(model: Model, tmp_path: Path) -> None:
    network = shaken(model.chain(), 1, SHAPE)
    write_npz(tmp_path / "weights.npz", to_arrays(network))
    again = from_arrays(model, read_npz(tmp_path / "weights.npz"))
    pooled = network.pool(images(50, SHAPE, 2))
    with torch.no_grad():
        assert torch.equal(again(pooled), network(pooled))


def test_names_are_layer_and_kind() -> None:
    """A unit has a threshold of its sum."""
    arrays = to_arrays(shaken(Mnist2kb().build(), 1, SHAPE))
    kinds = ("bias", "bias_log2", "out_log2", "weight", "weight_log2")
    expected = {f"{layer}.{kind}" for layer in ("conv1", "conv2", "conv3") for kind in kinds}
    expected |= {f"dense.{kind}" for kind in kinds if kind != "out_log2"}
    assert set(arrays) == expected
    assert {value.dtype for value in arrays.values()} == {np.dtype(np.float32)}
    units = shaken(WITH_UNITS.chain(), 1, SHAPE)
    assert {"unit1.out_log2", "unit1.first.weight", "unit1.second.out_log2"} <= {*to_arrays(units)}
    units.freeze()
    assert all(not t.requires_grad and float(t) % 1 == 0 for t in units.thresholds.values())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("conv1.weight", np.full((5, 1, 3, 3), np.inf), r"conv1\.weight is not finite"),
        ("conv2.out_log2", None, r"lack the threshold conv2\.out_log2"),
        ("conv2.out_log2", np.array(np.nan), r"lack the threshold conv2\.out_log2"),
        ("conv2.out_log2", np.zeros(3), r"lack the threshold conv2\.out_log2"),
    ],
)
def test_senseless_weights_and_thresholds(name: str, value: np.ndarray | None, said: str) -> None:
    arrays = to_arrays(shaken(Mnist2kb().build(), 1, SHAPE))
    del arrays[name]
    if value is not None:
        arrays[name] = value.astype(np.float32)
    with pytest.raises(ThimbleError, match=said):
        from_arrays(Mnist2kb(), arrays)


def conv(**options: object) -> nn.Conv2d:
    return nn.Conv2d(1, 2, 3, **options)  # type: ignore[arg-type]


END = (nn.Flatten(), nn.Linear(8, 3))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Sequential(conv()), "must start with a PixelPool"),
        (nn.Sequential(), "must start with a PixelPool"),
        (chain(conv(), nn.ReLU()), "must end with the layer that gives its logits"),
        (chain(), "must end with the layer that gives its logits"),
        (chain(conv(), *END), "after conv1: every Conv2d and Linear but the last"),
        (chain(conv(), nn.MaxPool2d(2), nn.ReLU(), *END), "after conv1"),
        (chain(conv(), nn.ReLU(), nn.ReLU(), *END), "after relu1"),
        (chain(conv(), nn.ReLU(), nn.BatchNorm2d(2), *END), "batchnorm2d1 is a BatchNorm2d"),
        (chain(conv(padding=1, padding_mode="reflect"), nn.ReLU(), *END), "pads with reflect"),
        (chain(conv(), nn.ReLU(), nn.MaxPool2d(2, padding=1), *END), "maxpool1 has padding"),
        (chain(conv(), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), *END), "maxpool1 has padding"),
    ],
)
def test_what_has_no_integer_counterpart_is_one_line(network: nn.Sequential, message: str) -> None:
    with pytest.raises(ThimbleError, match=message) as caught:
        check_layers(network)
    assert "\n" not in str(caught.value)
