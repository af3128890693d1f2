"""Convolutions along time: shapes, what is added, how many parameters."""

import pytest
import torch

from pipeline.errors import ThimbleError
from pipeline.models.time_channel import Block, TimeChannel


def test_bins_become_channels_and_frames_are_halved() -> None:
    network = TimeChannel().build()
    x = network[:2](torch.rand(1, 1, 80, 20))
    assert x.shape == (1, 24, 80, 1)
    for block, frames in zip(network[2:6], (40, 40, 40, 40), strict=True):
        x = block(x)
        assert x.shape == (1, 24, frames, 1)
    assert network[6](x).shape == (1, 12)


def test_as_many_parameters_as_it_says() -> None:
    """Normalizations are folded: a weight each and a bias a channel."""
    layers = [m for m in TimeChannel().build().modules() if hasattr(m, "weight")]
    weights = sum(m.weight.numel() for m in layers if m.weight.ndim > 1)  # type: ignore[operator, union-attr]
    assert weights + 24 * 9 + 12 == 3_972


@pytest.mark.parametrize("stride", [1, 2])
def test_a_block_of_one_stride_adds_its_input(stride: int) -> None:
    block, x = Block(3, 5, stride).eval(), torch.rand(2, 3, 9, 1)
    with torch.no_grad():
        for parameter in block.pointwise.parameters():
            parameter.zero_()
        assert (block(x) == (x if stride == 1 else 0)).all()


def test_an_even_kernel_is_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"model\.kernel=4 has to be odd"):
        TimeChannel(kernel=4).build()
