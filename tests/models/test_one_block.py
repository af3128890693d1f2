"""A layer or a block by itself, of any kernel, stride and padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pipeline.errors import ThimbleError
from pipeline.models.one_block import OneBlock


def shape(**options: Any) -> tuple[int, ...]:
    """Of what comes before the classifier: channels, rows, columns."""
    model = OneBlock(input_shape=(12, 10, 4), classes=3, **options)
    network = model.build()
    given = torch.zeros(1, 4, 12, 10)
    assert network(given).shape == (1, 3)
    return tuple(network[:-1](given).shape[1:])


def test_a_convolution() -> None:
    assert shape(kernel=(5, 3)) == (8, 8, 8)
    assert shape(stride=(2, 1), channels=9) == (9, 5, 8)
    assert shape(same=True) == (8, 12, 10)


def test_a_residual_block_adds_its_input() -> None:
    assert shape(block="residual") == (4, 12, 10)
    block = OneBlock(input_shape=(5, 5, 2), block="residual").build()[0]
    for weights in block.parameters():
        torch.nn.init.zeros_(weights)
    given = torch.rand(1, 2, 5, 5)
    assert torch.equal(block(given), given)


def test_a_separable_block_has_more_channels_within() -> None:
    network = OneBlock(input_shape=(8, 8, 4), block="separable", multiplier=3, channels=5).build()
    assert network.depthwise(torch.zeros(1, 4, 8, 8)).shape[1] == 12
    assert shape(block="separable", multiplier=3, channels=5) == (5, 10, 8)


def test_other_blocks_are_refused() -> None:
    with pytest.raises(ThimbleError, match=r"model.block=dense: choose convolution, residual"):
        OneBlock(block="dense").build()  # type: ignore[arg-type]
