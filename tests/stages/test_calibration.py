"""What rounded accumulators are calibrated on."""

from __future__ import annotations

import numpy as np

from stages._frames import FRAMES, calibration_frames
from tests.strategies import nets
from tests.strategies.nets import Net


def small() -> Net:
    net = Net((4, 4, 3))
    net.conv("input", 2)
    return net


def test_training_images_evenly_spaced_as_they_are_stored() -> None:
    images = np.arange(100 * 48, dtype=np.int64).reshape(100, 4, 4, 3).astype(np.uint8)
    found = list(calibration_frames(small().graph(), {"train_images": images}))
    assert len(found) == FRAMES
    assert np.array_equal(found[0], images[0].astype(np.int64) - 128)
    assert np.array_equal(found[-1], images[99].astype(np.int64) - 128)


def test_pictures_of_nothing_where_there_are_none() -> None:
    first, again = (list(calibration_frames(small().graph(), {})) for _ in range(2))
    assert len(first) == FRAMES and np.array_equal(first, again)
    assert np.ptp(first) > 50


def test_a_large_network_gets_two() -> None:
    graph = nets.mobilenet_v2(160, weights=False)
    assert len(list(calibration_frames(graph, {}))) == 2
