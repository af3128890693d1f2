import tracemalloc

import numpy as np
import pytest

from pipeline.datasets.noise import pictures


def test_equal_arguments_give_equal_pictures() -> None:
    first, again, other = (pictures(3, (20, 30, 3), seed) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).mean() > 0.9
    assert first.shape == (3, 20, 30, 3) and first.dtype == np.uint8


def test_they_differ_as_wholes_and_in_detail() -> None:
    """Plain noise of 4,096 pixels has means that differ by 1; these differ by 20 and more."""
    images = pictures(200, (64, 64, 1), 0).astype(float)
    assert images.mean((1, 2, 3)).std() > 15
    assert 110 < images.mean() < 146 and 45 < images.std() < 70
    neighbours = np.abs(np.diff(images, axis=2)).mean()
    strangers = np.abs(images - np.roll(images, 17, axis=2)).mean()
    assert 5 < neighbours < strangers / 1.5


@pytest.mark.parametrize("shape", [(1, 1, 640), (49, 10, 1), (1, 7, 2), (224, 224, 3)])
def test_any_shape(shape: tuple[int, int, int]) -> None:
    images = pictures(2, shape, 5)
    assert images.shape == (2, *shape) and len(np.unique(images)) > 5


def test_long_signals_take_little_memory() -> None:
    """No matrix of places and cells: it would have 2^34 entries."""
    tracemalloc.start()
    found = pictures(2, (1 << 17, 1, 1), 0)
    assert tracemalloc.get_traced_memory()[1] < 64 * found.size * found.itemsize
    tracemalloc.stop()
    assert 40 < found.std() < 70 and np.abs(np.diff(found[0, :, 0, 0].astype(int))).mean() < 40
