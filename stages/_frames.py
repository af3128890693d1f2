"""The frames that a network is tried on, the same in every stage that asks."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline import config
from pipeline.artifacts import Arrays
from pipeline.datasets.noise import pictures
from pipeline.frames import reshaped, stored
from pipeline.graph.graph import Graph
from pipeline.sliding import Windows

SEED = 20260101


def of_windows(cfg: Mapping[str, Any], data: Arrays) -> Arrays:
    """``data`` with test images, and sounds, as long as all of a run's windows are together: each
    followed by the next one. What a window of it is has no label."""
    windows = Windows(**cfg["sliding"])
    images = data["test_images"]
    if windows.windows == 1 or not len(images):
        return data
    found = {**data, "test_labels": data["test_labels"][:0]}
    if "test_sounds" not in data:
        rows = images.shape[1] + windows.more
        return {**found, "test_images": _followed(images, rows)}
    ear = config.instantiate(cfg["frontend"]).longer(windows.more)
    sounds = _followed(data["test_sounds"], ear.samples)
    return {**found, "test_sounds": sounds, "test_images": ear.spectrograms(sounds)}


def first_bytes(cfg: Mapping[str, Any], data: Arrays) -> int:
    """What has come when the first of several windows is whole; 0 where there is one."""
    windows = Windows(**cfg["sliding"])
    if windows.windows == 1:
        return 0
    if "test_sounds" in data:
        return 2 * int(config.instantiate(cfg["frontend"]).samples)
    rows, *others = data["test_images"].shape[1:]
    return (rows - windows.more) * prod(others)


def _followed(pieces: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """(n, m, …) -> (n, size, …)."""
    times = -(-size // pieces.shape[1])
    return np.concatenate([np.roll(pieces, -n, axis=0) for n in range(times)], axis=1)[:, :size]


def device_frames(graph: Graph, data: Arrays, target: Mapping[str, Any]) -> npt.NDArray[np.uint8]:
    """What the firmware is given for each of the test images, (n, bytes) or (n, h, w, c): their
    sounds, where a front end is before the network."""
    given = data["test_sounds"].astype("<i2") if "test_sounds" in data else None
    frames = test_frames(graph, data, target) if given is None else given
    return np.ascontiguousarray(frames).view(np.uint8)


def test_frames(graph: Graph, data: Arrays, target: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The test images as the input tensor stores them, (n, *input shape); where there are none,
    ``target.images`` random pictures."""
    tensor = graph.tensors[graph.input]
    images = data["test_images"]
    if not len(images):
        shape = (1,) * (3 - len(tensor.shape)) + tensor.shape
        images = pictures(max(0, int(target["images"])), (shape[0], shape[1], shape[2]), SEED)
        tensor = replace(tensor, raw=None)  # they mean nothing, and use all integers
    return stored(reshaped(np.asarray(images, np.uint8), tensor), tensor)
