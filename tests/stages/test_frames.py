"""What a run of several windows is tried on: longer sounds, and images, without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frontends.none import NoFrontend
from pipeline.frontends.square_wave import SquareWave
from pipeline.sliding import Windows

EAR = SquareWave(bins=4, frames=6, chunk=64, history=2)


def heard() -> dict[str, Any]:
    sounds = np.random.default_rng(1).integers(-9_000, 9_000, (3, EAR.samples)).astype(np.int16)
    labels = np.arange(3, dtype=np.uint8)
    return {"test_sounds": sounds, "test_images": EAR.features(sounds), "test_labels": labels}


def test_one_window_hears_the_sounds_as_they_are() -> None:
    data = heard()
    assert Windows(1, 2).data(data, EAR) is data
    assert Windows(1, 2).first_bytes(data, EAR) == 0


def test_each_sound_is_followed_by_the_next() -> None:
    data = heard()
    found = Windows(3, 2).data(data, EAR)
    assert found["test_sounds"].shape == (3, 416 + 4 * 64)
    assert (found["test_sounds"][:, :416] == data["test_sounds"]).all()
    assert (found["test_sounds"][2, 416:] == data["test_sounds"][0, : 4 * 64]).all()
    assert found["test_images"].shape == (3, 10, 4, 1)
    assert (found["test_images"][:, :6] == data["test_images"]).all()
    assert not len(found["test_labels"])
    assert Windows(3, 2).first_bytes(found, EAR) == 2 * 416


def test_images_have_more_rows() -> None:
    images = np.random.default_rng(2).integers(0, 256, (2, 5, 3, 2)).astype(np.uint8)
    data = {"test_images": images, "test_labels": np.zeros(2, np.uint8)}
    found = Windows(4, 2).data(data, NoFrontend())
    assert found["test_images"].shape == (2, 11, 3, 2)
    assert (found["test_images"][0, 5:10] == images[1]).all()
    assert (found["test_images"][0, 10] == images[0, 0]).all()
    assert Windows(4, 2).first_bytes(found, NoFrontend()) == 5 * 3 * 2


def test_nothing_to_try_stays_nothing() -> None:
    data = {"test_images": np.zeros((0, 5, 3, 2), np.uint8), "test_labels": np.zeros(0, np.uint8)}
    assert Windows(2, 2).data(data, EAR) is data


def test_more_sound_than_the_device_counts() -> None:
    with pytest.raises(ThimbleError, match=r"counts 32,767 samples.*fewer sliding.windows"):
        Windows(300, 2).data(heard(), EAR)
