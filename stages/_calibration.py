"""The frames that rounded accumulators are calibrated on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.datasets.noise import pictures
from pipeline.frames import reshaped, stored
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray

FRAMES = 8
MACS = 200_000_000


def calibration_frames(graph: Graph, data: Arrays) -> Iterator[IntArray]:
    """Training images, evenly spaced, or pictures of nothing where there are none; for a large
    network fewer, but at least two."""
    tensor = graph.tensors[graph.input]
    number = min(FRAMES, max(2, MACS // max(1, graph.macs)))
    images = data.get("train_images")
    if images is None or not len(images):
        image = (1,) * (3 - len(tensor.shape)) + tensor.shape
        images = pictures(number, (image[0], image[1], image[2]), 0)
        tensor = replace(tensor, raw=None)
    chosen = np.unique(np.linspace(0, len(images) - 1, number).astype(np.int64))
    yield from stored(reshaped(images[chosen], tensor), tensor).astype(np.int64)
