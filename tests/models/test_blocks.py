from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import nn

from pipeline import config
from pipeline.errors import ThimbleError
from pipeline.models.blocks import KINDS, Blocks
from pipeline.models.layers import InvertedResidual, SqueezeExcite


def network(*blocks: dict[str, Any], shape: tuple[int, int, int] = (32, 24, 3)) -> nn.Sequential:
    return Blocks(shape, 5, blocks).build().eval()


def test_the_example_shows_every_kind() -> None:
    node = yaml.safe_load(Path("conf/model/blocks.yaml").read_text())
    assert {block["kind"] for block in node["blocks"]} | {"avgpool"} == set(KINDS)
    config.instantiate(node).build()


def test_options_for_all_layers_of_a_block_and_for_each() -> None:
    made = network(
        {
            "kind": "mbconv",
            "channels": 8,
            "expand": (1, 3, 6),
            "kernel": 5,
            "stride": 2,
            "repeat": 3,
        }
    )
    layers = [layer for layer in made if isinstance(layer, InvertedResidual)]
    depthwise = [layer.body.depthwise.conv for layer in layers]
    assert [conv.in_channels for conv in depthwise] == [3, 24, 48]
    assert [conv.stride for conv in depthwise] == [(2, 2), (1, 1), (1, 1)]
    assert {conv.kernel_size for conv in depthwise} == {(5, 5)}
    assert [layer.adds for layer in layers] == [False, True, True]


def test_squeezed_channels_are_a_share_of_the_blocks_input() -> None:
    made = network(
        {"kind": "conv", "channels": 12}, {"kind": "mbconv", "channels": 8, "squeeze": 0.25}
    )
    found = [m for m in made.modules() if isinstance(m, SqueezeExcite)]
    assert [m.squeeze.out_channels for m in found] == [3]


def test_pools_keep_channels_and_take_whole_windows() -> None:
    made = network(
        {"kind": "conv", "channels": 4},
        {"kind": "maxpool", "kernel": 3, "stride": 2},
        {"kind": "avgpool"},
    )
    assert made[:3](torch.zeros(1, 3, 32, 24)).shape == (1, 4, 7, 5)
    assert made(torch.zeros(1, 3, 32, 24)).shape == (1, 5)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"kind": "mbcov", "channels": 8}, r"blocks\[0\]: kind has to be one of conv, separable"),
        ({"channels": 8}, "kind has to be one of"),
        ("mbconv", "kind has to be one of.*'mbconv'"),
        ({"kind": "mbconv", "chanels": 8}, "mbconv has no 'chanels'; it has channels, kernel"),
        ({"kind": "conv"}, "channels=None has to be a number"),
        ({"kind": "conv", "channels": 0}, "channels=0 has to be"),
        ({"kind": "conv", "channels": 8, "kernel": 2.5}, r"kernel=2\.5 has to be"),
        ({"kind": "conv", "channels": 8, "kernel": 4}, "has to be odd, not 4"),
        ({"kind": "conv", "channels": 8, "repeat": 0}, "repeat=0"),
        ({"kind": "mbconv", "channels": 8, "expand": (3, 3), "repeat": 3}, "or a list of 3"),
        ({"kind": "mbconv", "channels": 8, "expand": 0}, "expand=0 has to be"),
        ({"kind": "maxpool", "kernel": 40}, r"blocks\[0\]: nothing is left of the maxpool's input"),
    ],
)
def test_mistakes_are_one_line(block: Any, message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        network(block)


def test_no_blocks_are_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"model\.blocks is empty"):
        network()
