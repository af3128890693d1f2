"""What published counts do not show: other sizes, blocks, pools of pixels, weights' sizes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from pipeline import config
from pipeline.datasets.cifar10 import parse
from pipeline.datasets.dataset import parts_of
from pipeline.datasets.nothing import Nothing
from pipeline.models.blocks import KINDS, Blocks
from pipeline.models.cifar10_2kb import Cifar10
from pipeline.models.google12 import Google12
from pipeline.models.layers import InvertedResidual, SqueezeExcite, divisible, same_padding
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.mobilenet_v2 import MobileNetV2
from pipeline.models.network import (
    ByteConv2d,
    PixelPool,
    ResidualUnit,
    loaded,
    resized,
    state_arrays,
)
from pipeline.models.one_block import OneBlock
from pipeline.models.resnet8 import ResNet8
from pipeline.models.small_cnn import SmallCnn
from pipeline.models.time_channel import Block, TimeChannel
from tests.models.counting import count, count_module, member, on_meta


@pytest.mark.parametrize(
    ("name", "shape", "classes", "options"),
    [
        ("mobilenet_v1", (33, 65, 1), 5, {"width": 0.125}),
        ("mobilenet_v2_pex", (47, 96, 4), 3, {"width": 0.35}),
        ("res8", (101, 40, 1), 12, {"pool": (4, 3)}),
        ("ds_cnn_s", (98, 40, 2), 7,
         {"channels": (8, 12), "kernel": (9, 5), "stride": (3, 2), "second_stride": 2}),
        ("resnet8", (20, 36, 1), 4, {"channels": (4, 8)}),
        ("lenet5", (32, 48, 3), 6, {"activation": "relu"}),
        ("lenet5", (12, 12, 1), 10, {}),
        ("alexnet", (67, 67, 1), 9, {}),
        ("vgg16", (32, 64, 1), 2, {}),
        ("mnist_2kb", (20, 36, 2), 7, {"channels": (4, 6)}),
        ("vit_mnist", (8, 12, 3), 4, {"patch": (2, 4), "channels": 8, "heads": 2}),
        ("vit_mnist", (9, 10, 1), 3, {"patch": (1, 10), "channels": 6, "heads": 0, "kernel": 3}),
        ("record_mnist", (80, 64, 3), 7, {"pooled": (1,), "input_pool": 2}),
    ],
)  # fmt: skip
def test_rectangles_and_other_sizes(
    name: str, shape: tuple[int, ...], classes: int, options: dict[str, Any]
) -> None:
    model = member(name, input_shape=shape, classes=classes, **options)
    assert count(model).output == (1, classes)


def test_res15_reaches_further_and_ds_cnn_pads_as_tensorflow() -> None:
    """(left, right, top, bottom): 49 frames to 25, 10 coefficients to 5; or all kept."""
    layers = [m for m in member("res15").build().modules() if isinstance(m, nn.Conv2d)]
    assert [m.dilation[0] for m in layers] == [1, 1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8, 16]
    assert member("ds_cnn_s").padding == (1, 1, 4, 5)  # type: ignore[attr-defined]
    assert member("micronet_kws_l").padding == (1, 2, 4, 5)  # type: ignore[attr-defined]


def test_pex_halves_the_image_in_the_first_projection() -> None:
    """Explain table 3's 226 kB of partial execution: 3x224x224 + 2x112x112 + 16x56x56."""
    shapes = []
    network = MobileNetV2(early_downsampling=True).build().eval()
    for block in network.get_submodule("blocks")[:3]:
        block.register_forward_hook(lambda _, __, output: shapes.append(tuple(output.shape[1:])))
    network(torch.zeros(1, 3, 224, 224))
    assert shapes == [(16, 56, 56), (24, 56, 56), (24, 56, 56)]
    assert 3 * 224**2 + 2 * 112**2 + 16 * 56**2 == 225_792


@pytest.mark.parametrize(
    ("modified", "in_patches", "in_all"), [(False, 0.306, 0.093), (True, 0.389, 0.112)]
)
def test_pex_overheads_of_patches(modified: bool, in_patches: float, in_all: float) -> None:
    """Table 3 gives the overhead of patches twice: in the layers up to the fourth block, in all.
    The ratio tells the kernel of the modified projection: 1x1 would make 0.100 of 0.389.
    """
    model = MobileNetV2(early_downsampling=modified)
    network, example = on_meta(model)
    patched = nn.Sequential(network.get_submodule("stem"), network.get_submodule("blocks")[:4])
    share = count_module(patched, example).macs / count(model).macs
    assert round(share * in_patches, 3) == pytest.approx(in_all, abs=1e-3)


def blocks(*chosen: dict[str, Any]) -> nn.Sequential:
    return Blocks((32, 24, 3), 5, chosen).build().eval()


def test_the_example_shows_every_kind_of_block() -> None:
    node = yaml.safe_load(Path("conf/model/blocks.yaml").read_text())
    assert {block["kind"] for block in node["blocks"]} | {"avgpool"} == set(KINDS)
    config.instantiate(node).build()


def test_options_for_all_layers_of_a_block_and_for_each() -> None:
    options = {"channels": 8, "expand": (1, 3, 6), "kernel": 5, "stride": 2, "repeat": 3}
    made = blocks({"kind": "mbconv", **options})
    layers = [layer for layer in made if isinstance(layer, InvertedResidual)]
    depthwise = [layer.body.depthwise.conv for layer in layers]
    assert [conv.in_channels for conv in depthwise] == [3, 24, 48]
    assert [conv.stride for conv in depthwise] == [(2, 2), (1, 1), (1, 1)]
    assert {conv.kernel_size for conv in depthwise} == {(5, 5)}
    assert [layer.adds for layer in layers] == [False, True, True]


def test_squeezed_channels_are_a_share_and_pools_take_whole_windows() -> None:
    squeezed = {"kind": "mbconv", "channels": 8, "squeeze": 0.25}
    made = blocks({"kind": "conv", "channels": 12}, squeezed)
    found = [m for m in made.modules() if isinstance(m, SqueezeExcite)]
    assert [m.squeeze.out_channels for m in found] == [3]
    pool = {"kind": "maxpool", "kernel": 3, "stride": 2}
    made = blocks({"kind": "conv", "channels": 4}, pool, {"kind": "avgpool"})
    assert made[:3](torch.zeros(1, 3, 32, 24)).shape == (1, 4, 7, 5)
    assert made(torch.zeros(1, 3, 32, 24)).shape == (1, 5)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"kernel": (5, 3)}, (8, 8, 8)),
        ({"stride": (2, 1), "channels": 9}, (9, 5, 8)),
        ({"same": True}, (8, 12, 10)),
        ({"block": "residual"}, (4, 12, 10)),
        ({"block": "separable", "multiplier": 3, "channels": 5}, (5, 10, 8)),
    ],
)
def test_one_block(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    network = OneBlock(input_shape=(12, 10, 4), classes=3, **options).build()
    given = torch.rand(1, 4, 12, 10)
    assert network(given).shape == (1, 3)
    assert network[:-1](given).shape[1:] == shape
    if "multiplier" in options:
        assert network.depthwise(given).shape[1] == 12
    if options.get("block") == "residual":
        for weights in network[0].parameters():
            nn.init.zeros_(weights)
        assert torch.equal(network[0](given), given)


def test_bins_become_channels_and_frames_are_halved() -> None:
    network = TimeChannel().build()
    x = network[:2](torch.rand(1, 1, 80, 20))
    assert x.shape == (1, 24, 80, 1)
    assert network[2:3](x).shape == network[2:6](x).shape == (1, 24, 40, 1)


@pytest.mark.parametrize(("stride", "pads"), [(1, True), (2, True), (1, False)])
def test_a_block_along_time_of_one_stride_adds_its_input(stride: int, pads: bool) -> None:
    block, x = Block(3, 5, stride, pads).eval(), torch.rand(2, 3, 9, 1)
    with torch.no_grad():
        for parameter in block.pointwise.parameters():
            parameter.zero_()
        kept = x if pads else x[:, :, 2:-2]
        assert (block(x) == (kept if stride == 1 else 0)).all()


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_gives_ceil(kernel: int, stride: int) -> None:
    for size in range(1, 40):
        before, after = same_padding(size, kernel, stride)
        assert 0 <= before <= after <= before + 1
        outputs = (size + before + after - kernel) // stride + 1
        assert outputs == -(-size // stride)
        if before + after:  # no more than is needed
            assert (size + before + after - 1 - kernel) // stride + 1 < outputs


def test_divisible_never_loses_more_than_a_tenth() -> None:
    """The channels of MobileNetV2 at widths 0.35, 0.75 and 1.4, as torchvision has them."""
    assert [divisible(c * 0.35) for c in (32, 16, 24, 64, 96)] == [16, 8, 8, 24, 32]
    assert [divisible(c * 1.4) for c in (32, 24, 320, 1280)] == [48, 32, 448, 1792]
    assert all(divisible(c) >= 0.9 * c and divisible(c) % 8 == 0 for c in range(1, 2000))


def test_squeeze_excitation_scales_channels() -> None:
    x = torch.rand(3, 8, 5, 4) + 1
    ratio = SqueezeExcite(8, 2, "silu")(x) / x
    assert torch.allclose(ratio, ratio[:, :, :1, :1].expand_as(x), atol=1e-6)
    assert ((ratio > 0) & (ratio < 1)).all()


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_the_pixel_pool_is_the_integer_one(size: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (50, 3, 16, 16))
    pixels[0], pixels[1] = 255, 0
    pixels[1, :, 0, 0] = 63
    blocks = pixels.reshape(50, 3, 16 // size, size, 16 // size, size)
    expected = blocks.sum((3, 5)) // (16 * size**2)
    pooled = PixelPool(size)(torch.from_numpy(pixels).float()) * 16
    assert (pooled.numpy() == expected).all()
    assert expected.max() == 15


def test_a_network_takes_the_size_of_its_weights() -> None:
    small = Mnist2kb(channels=(3, 4, 5)).build()
    content = state_arrays(small)
    before = {name: value.copy() for name, value in content.items()}
    grown = resized(Mnist2kb().build(), content)
    images = torch.rand(2, 1, 28, 28) * 255
    assert torch.equal(grown(images), small(images))
    assert grown.get_submodule("conv2").in_channels == 3
    assert grown.get_submodule("dense").in_features == 4 * 4 * 5
    with torch.no_grad():
        for parameter in grown.parameters():
            parameter.add_(1)
    assert all((content[name] == before[name]).all() for name in content), "trained along"


def test_any_network_takes_its_own_arrays() -> None:
    model = ResNet8(input_shape=(16, 16, 3))
    first, second = model.build(), model.build()
    content = state_arrays(first)
    assert content["stem.norm.running_mean"].shape == (16,)
    images = torch.rand(2, 3, 16, 16)
    extra = content | {"accuracy_float": np.array(0.5)}
    assert torch.equal(loaded(second, extra).eval()(images), first.eval()(images))


def test_no_images_and_those_of_cifar_10_fit() -> None:
    """A record in the set's own format."""
    Mnist2kb().check(Nothing().arrays())
    split = parse(bytes([9]) + bytes(range(256)) * 12)
    for data in (Nothing().arrays(), parts_of(split, split, split)):
        ResNet8().check(data)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("mnist_2kb", 2957), ("record_mnist", 2853), ("record_mnist_flash", 23088),
        ("record_cifar10_flash", 16856), ("record_cifar10_2kb", 2236),
        ("cifar10_2kb", 20876),
    ],
)  # fmt: skip
def test_a_yaml_is_the_network_that_it_says(name: str, weights: int) -> None:
    model = member(name)
    parameters = model.build().named_parameters()
    assert sum(value.numel() for name, value in parameters if name.endswith("weight")) == weights
    defaults = {"mnist_2kb": Mnist2kb(), "record_mnist": SmallCnn()}
    assert model == defaults.get(name, model)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Mnist2kb(), [(1, 14, 14), (5, 12, 12), (8, 10, 10), (11, 8, 8), (11, 4, 4)]),
        (SmallCnn(), [(1, 28, 28), (5, 12, 12), (8, 10, 10), (8, 8, 8), (8, 4, 4), (16, 2, 2)]),
        (Google12((96, 24, 1), channels=(6, 24, 28), units=(28, 40)),
         [(1, 96, 24), (6, 24, 24), (24, 11, 11), (28, 9, 9), (28, 5, 5), (40, 1, 1)]),
        (Cifar10(),
         [(3, 32, 32), (12, 16, 16), (12, 12, 12), (12, 6, 6), (60, 4, 4), (80, 4, 4)]),
    ],
    ids=lambda item: type(item).__name__,
)  # fmt: skip
def test_shapes_on_the_way(model: Any, expected: list[tuple[int, ...]]) -> None:
    x, shapes = model.example(), []
    for layer in model.chain():
        x = layer(x)
        if x.ndim == 4 and not isinstance(layer, nn.ReLU):
            shapes.append(tuple(x.shape[1:]))
    assert shapes == expected and x.shape == (1, model.classes)


def test_convolutions_start_orthogonal() -> None:
    weight = SmallCnn().build().get_submodule("conv2").weight
    rows = weight.detach().reshape(8, -1)
    assert torch.allclose(rows @ rows.T, torch.eye(8), atol=1e-5)


def test_depthwise_and_bytes() -> None:
    model = SmallCnn(convolutions=((5, 3, 2), (0, 3, 1), (7, 1, 1)), bits=(4, 8, 4), pooled=())
    first, apart, last = (layer for layer in model.build() if isinstance(layer, nn.Conv2d))
    assert (apart.groups, apart.out_channels, apart.weight.shape[1]) == (5, 5, 1)
    assert (first.groups, last.groups, last.in_channels) == (1, 1, 5)
    assert [isinstance(each, ByteConv2d) for each in (first, apart, last)] == [False, True, False]
    assert model.build()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_a_unit_adds_the_middle_of_its_input() -> None:
    unit, x = ResidualUnit(3, 3), torch.rand(2, 3, 9, 8)
    with torch.no_grad():
        for parameter in unit.second.parameters():
            parameter.zero_()
        assert (unit(x) == x[:, :, 2:7, 2:6]).all()
    unit, x = ResidualUnit(2, 3), torch.rand(1, 2, 5, 6)
    assert unit.matched is not None and unit(x).shape == (1, 3, 1, 2)
