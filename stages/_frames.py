"""The frames that a network is tried on, the same in every stage that asks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.datasets.noise import pictures
from pipeline.frames import stored
from pipeline.graph.graph import Graph

SEED = 20260101


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
    return stored(np.asarray(images, np.uint8), tensor)
