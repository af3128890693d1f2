import pytest
import torch

from pipeline.models.layers import (
    InvertedResidual,
    SqueezeExcite,
    convolution,
    divisible,
    same_padding,
)


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


@pytest.mark.parametrize(("size", "kernel", "stride"), [(7, 3, 2), (8, 3, 2), (9, 5, 2), (5, 7, 1)])
def test_odd_kernels_give_the_sizes_of_same_padding(size: int, kernel: int, stride: int) -> None:
    shape = convolution(2, 4, kernel, stride)(torch.zeros(2, 2, size, size)).shape
    assert shape == (2, 4, -(-size // stride), -(-size // stride))


def test_divisible_never_loses_more_than_a_tenth() -> None:
    """The channels of MobileNetV2 at widths 0.35, 0.75 and 1.4, as torchvision has them."""
    assert [divisible(c * 0.35) for c in (32, 16, 24, 64, 96)] == [16, 8, 8, 24, 32]
    assert [divisible(c * 1.4) for c in (32, 24, 320, 1280)] == [48, 32, 448, 1792]
    assert all(divisible(c) >= 0.9 * c and divisible(c) % 8 == 0 for c in range(1, 2000))


def test_a_block_adds_its_input_where_the_shapes_are_equal() -> None:
    x = torch.rand(2, 8, 6, 6)
    for block, adds in (
        (InvertedResidual(8, 8), True),
        (InvertedResidual(8, 8, stride=2), False),
        (InvertedResidual(8, 12), False),
        (InvertedResidual(8, 8, project=(3, 2)), False),
    ):
        block.eval()
        body = block.body(x)
        assert block.adds == adds
        assert torch.equal(block(x), x + body if adds else body)


def test_squeeze_excitation_scales_channels() -> None:
    x = torch.rand(3, 8, 5, 4) + 1
    ratio = SqueezeExcite(8, 2, "silu")(x) / x
    assert torch.allclose(ratio, ratio[:, :, :1, :1].expand_as(x), atol=1e-6)
    assert ((ratio > 0) & (ratio < 1)).all()
