"""The network of table 2: shapes on the way, units that are sums, and what is too small."""

import pytest
import torch

from pipeline.errors import ThimbleError
from pipeline.models.google12 import Google12
from pipeline.models.network import ResidualUnit


def test_as_printed_the_units_leave_one_pixel() -> None:
    """24 x 96, weights of 23,220 B, and those that match 28 channels to 40."""
    model = Google12(input_shape=(96, 24, 1), channels=(6, 24, 28), units=(28, 40))
    network = model.chain()
    x, shapes = model.example(), []
    for layer in network:
        x = layer(x)
        if not isinstance(layer, torch.nn.ReLU):
            shapes.append(tuple(x.shape[1:]))
    maps = [(1, 96, 24), (6, 24, 24), (24, 11, 11), (28, 9, 9), (28, 5, 5), (40, 1, 1)]
    assert shapes == [*maps, (40,), (12,)]
    weights = sum(p.numel() for p in network.parameters() if p.ndim > 1)
    assert weights // 2 == 23_220 + 28 * 40 // 2


def test_a_unit_adds_the_middle_of_its_input() -> None:
    unit, x = ResidualUnit(3, 3), torch.rand(2, 3, 9, 8)
    with torch.no_grad():
        for parameter in unit.second.parameters():
            parameter.zero_()
        assert (unit(x) == x[:, :, 2:7, 2:6]).all()


def test_a_unit_of_other_channels_matches_them() -> None:
    unit, x = ResidualUnit(2, 3), torch.rand(1, 2, 5, 6)
    assert unit.matched is not None and unit(x).shape == (1, 3, 1, 2)


def test_too_small_is_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"80 frames of 12 bins nothing is left.*model\.units"):
        Google12(input_shape=(80, 12, 1)).build()
