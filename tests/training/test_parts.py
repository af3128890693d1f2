"""Parts of recipes: numbers, images made ahead, checkpoints, gradients in every layout."""

import hashlib
import threading
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import interpolate

from pipeline.datasets.synthetic import Synthetic
from pipeline.training.ahead import one_ahead
from pipeline.training.augment import KNOTS, Distortion, _basis
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.environment import Run, repeatable
from pipeline.training.float_only import fast_layout
from pipeline.training.recipe import ThreePhases


def numbers(*counters: int, seed: int = 0) -> list[float]:
    return torch.rand(4, generator=Run(seed).generator(*counters)).tolist()


def test_each_purpose_has_numbers_and_all_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """And checkpoints are where the runner says."""
    drawn = [numbers(), numbers(0), numbers(1), numbers(0, 0), numbers(0, seed=1)]
    assert len({tuple(values) for values in drawn}) == len(drawn)
    assert numbers(3, 1) == numbers(3, 1)
    monkeypatch.delenv("THIMBLE_CHECKPOINTS", raising=False)
    assert Run.from_environment(3, 1) == Run(3, 1, None)
    monkeypatch.setenv("THIMBLE_CHECKPOINTS", "/kept/here")
    assert Run.from_environment(3, 1) == Run(3, 1, Path("/kept/here"))
    with repeatable(Run(seed=5)):
        first = torch.rand(3)
        assert torch.are_deterministic_algorithms_enabled()
    with repeatable(Run(seed=5)):
        assert torch.equal(first, torch.rand(3))
    for threads, expected in ((1, 1), (2, 1), (3, 2)):  # one is left for the images
        with repeatable(Run(threads=threads)):
            assert torch.get_num_threads() == expected
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    threads = torch.get_num_threads()
    with pytest.raises(KeyError), repeatable(Run(seed=9, threads=3)):
        raise KeyError
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory  # as PyTorch has it
    assert torch.equal(torch.rand(2), expected)


DATA = Synthetic(shape=(12, 20, 3)).arrays()


@pytest.mark.parametrize("asked", [range(5), (2, 3, 4), (1, 4)])
def test_results_are_those_of_the_function_from_anywhere(asked: range | tuple[int, ...]) -> None:
    made = []

    def square(index: int) -> int:
        made.append(index)
        return index * index

    with one_ahead(square, 5) as make:
        assert [make(index) for index in asked] == [index * index for index in asked]
    assert max(made) == 4, "nothing beyond the end"


def test_the_next_one_is_made_meanwhile() -> None:
    made, began = [], threading.Event()

    def make(index: int) -> int:
        made.append((index, threading.current_thread() is threading.main_thread()))
        if index == 1:
            began.set()
        return index

    with one_ahead(make, 2) as ahead:
        assert ahead(0) == 0
        assert began.wait()  # nobody asked for 1 yet
        assert ahead(1) == 1
    assert made == [(0, False), (1, False)]


def test_errors_reach_who_asks() -> None:
    def fail(index: int) -> int:
        raise ValueError(index)

    with one_ahead(fail, 1) as ahead, pytest.raises(ValueError, match="0"):
        ahead(0)


STATE = {"network": {"w": torch.arange(5.0)}, "place": {"epoch": 3, "rows": [{"phase": "float"}]}}


@pytest.mark.parametrize("keep", [0, 10, 40, -1])
def test_a_damaged_file_counts_as_none(tmp_path: Path, keep: int) -> None:
    checkpoint = Checkpoint(tmp_path, "abc")
    checkpoint.save(STATE)
    other = b"not what torch.save writes"
    for content in (checkpoint.path.read_bytes()[:keep], hashlib.sha256(other).digest() + other):
        checkpoint.path.write_bytes(content)
        assert checkpoint.load() is None
    checkpoint.save(STATE)
    assert checkpoint.load() is not None


@pytest.mark.parametrize("channels", [4, 7, 16])
def test_gradients_of_a_network(channels: int) -> None:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, channels, 3), nn.Conv2d(channels, 8, 1, stride=2))
    double = nn.Sequential(nn.Conv2d(3, channels, 3), nn.Conv2d(channels, 8, 1, stride=2))
    double.load_state_dict(network.state_dict())
    layout = fast_layout(network)
    assert (layout == torch.channels_last) == (channels == 16)
    images = torch.randn(32, 3, 18, 18)
    network.to(memory_format=layout)  # type: ignore[call-overload]
    torch.autograd.backward(network(images).square().sum())
    torch.autograd.backward(double.double()(images.double()).square().sum())
    for found, right in zip(network.parameters(), double.parameters(), strict=True):
        assert found.grad is not None and right.grad is not None
        assert torch.allclose(found.grad.double(), right.grad, rtol=1e-3, atol=1e-2)


def spot(row: int, column: int, size: int = 28) -> torch.Tensor:
    """A blurred bright spot, so that its centre of mass can be measured."""
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    distance = (y - row).square() + (x - column).square()
    return (255 * torch.exp(-distance / 8))[None, None]


def centre(images: torch.Tensor) -> torch.Tensor:
    """(n, 1, h, w) -> (n, 2): row and column of the centres of mass."""
    mass = images.sum((1, 2, 3))
    index = torch.arange(images.shape[-1], dtype=torch.float32)
    rows = (images.sum((1, 3)) * index).sum(1) / mass
    return torch.stack([rows, (images.sum((1, 2)) * index).sum(1) / mass], 1)


def distorted(images: torch.Tensor, distortion: Distortion, seed: int = 0) -> torch.Tensor:
    return distortion.apply(images, torch.Generator().manual_seed(seed))


def test_the_generator_alone_decides() -> None:
    images = torch.rand(7, 1, 28, 28)
    assert distorted(images, Distortion()) is images, "without bounds nothing is touched"
    distortion = Distortion(
        rotation_degrees=5, scale=0.1, shear=0.1, shift_pixels=2, elastic_pixels=0.5
    )
    first = distorted(images, distortion, 1)
    assert torch.equal(first, distorted(images, distortion, 1))
    assert not torch.equal(first, distorted(images, distortion, 2))
    assert first.shape == images.shape
    made = ThreePhases(1, 1, 1, rotation_degrees=3.0, shear=0.1, flip=True)
    assert made.distortion == Distortion(rotation_degrees=3.0, shear=0.1, flip=True)
    assert ThreePhases(1, 1, 1).distortion == Distortion()


def test_shifts_and_rotations_are_spread_over_their_bounds() -> None:
    moved = centre(distorted(spot(14, 14).repeat(500, 1, 1, 1), Distortion(shift_pixels=3))) - 14
    assert float(moved.abs().max()) <= 3.01
    assert float(moved.min()) < -2.5 and float(moved.max()) > 2.5
    assert float(moved.mean().abs()) < 0.3
    moved = centre(distorted(spot(6, 14).repeat(200, 1, 1, 1), Distortion(rotation_degrees=90)))
    distance = (moved - 13.5).square().sum(1).sqrt()
    assert float((distance - 7.52).abs().max()) < 0.1
    assert float(moved[:, 1].max()) > 20 and float(moved[:, 1].min()) < 7


def test_scaling_moves_what_is_off_the_middle_and_half_are_mirrored() -> None:
    moved = centre(distorted(spot(6, 13).repeat(200, 1, 1, 1), Distortion(scale=0.2)))
    assert float(moved[:, 0].min()) < 5 and float(moved[:, 0].max()) > 6.8
    columns = centre(distorted(spot(14, 5).repeat(400, 1, 1, 1), Distortion(flip=True)))[:, 1]
    mirrored = (columns - 22).abs() < 0.1
    assert torch.all(mirrored | ((columns - 5).abs() < 0.1))
    assert 0.4 < float(mirrored.float().mean()) < 0.6


def test_elastic_displacements_differ_within_an_image() -> None:
    images = (spot(7, 7) + spot(20, 20)).repeat(300, 1, 1, 1)
    moved = distorted(images, Distortion(elastic_pixels=1.0))
    upper, lower = centre(moved[..., :14, :14]), centre(moved[..., 14:, 14:])
    first, second = upper - upper.mean(0), lower - lower.mean(0)
    assert 0.3 < float(first.std()) < 1.5
    correlation = float((first * second).mean() / (first.std() * second.std()))
    assert abs(correlation) < 0.3


def test_pixels_stay_in_their_range_and_images_as_sharp_as_they_were() -> None:
    """Move stripes of period 4 by half a pixel: bilinear interpolation would leave 0.71."""
    moved = distorted(
        torch.full((50, 3, 28, 28), 255.0),
        Distortion(rotation_degrees=9, scale=0.2, shear=0.2, shift_pixels=3, elastic_pixels=1.0),
    )
    assert float(moved.min()) >= 0
    assert float(moved.max()) <= 255.001
    stripes = 127.5 + 100 * torch.sin(torch.arange(28) * torch.pi / 2 + 0.3).repeat(300, 1, 28, 1)
    moved = distorted(stripes, Distortion(shift_pixels=1.0))[:, :, 4:-4, 4:24]
    assert float(moved.std((1, 2, 3)).min()) > 0.9 * float(stripes[..., 4:24].std())


@pytest.mark.parametrize("shape", [(28, 28), (32, 20)])
def test_the_basis_is_bicubic_interpolation(shape: tuple[int, int]) -> None:
    knots = torch.randn(4, 1, KNOTS, KNOTS)
    expected = interpolate(knots, shape, mode="bicubic", align_corners=True)
    found = (knots.reshape(4, -1) @ _basis(*shape)).reshape(expected.shape)
    assert torch.allclose(found, expected, atol=1e-5)
