"""The frames that a network is calibrated and tried on, the same in every stage that asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays, read_npz
from pipeline.datasets.noise import for_inputs
from pipeline.frames import reshaped, stored
from pipeline.graph.ends import joined
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.sliding import Windows

SEED = 20260101
FRAMES = 8
MACS = 200_000_000
"""MACs of all frames that rounded accumulators are calibrated on, if these are more than two."""


def calibration_frames(graph: Graph, data: Path, windows: Windows) -> Iterator[IntArray]:
    """Training images of the file ``data``, read when the first one is asked for, evenly spaced,
    of a stream one after the other, or pictures of nothing where there are none; for a large
    network fewer, but at least two."""
    number = min(FRAMES, max(2, MACS // max(1, graph.macs)))
    images = read_npz(data).get("train_images", np.zeros(0))
    chosen = np.unique(np.linspace(0, len(images) - 1, number).astype(np.int64))
    images = windows.calls(images[chosen])[:number] if len(images) else images
    yield from _stored(graph, images, number, 0).astype(np.int64)


def test_frames(graph: Graph, data: Arrays, target: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return the test images as the input tensor stores them, (n, *input shape); where there are
    none, ``target.images`` random pictures."""
    images = data["test_images"]
    number = len(images) or max(0, int(target["images"]))
    return _stored(graph, images, number, SEED)


def _stored(graph: Graph, images: npt.NDArray[Any], number: int, seed: int) -> npt.NDArray[Any]:
    """(n, h, w, c) -> (n, *input shape), of several inputs (n, elements) -> (n, elements); where
    there are none, of ``number`` random pictures."""
    tensors = [graph.tensors[name] for name in graph.inputs]
    if not len(images):
        images = for_inputs(number, [each.shape for each in tensors], seed)
        tensors = [replace(each, raw=None) for each in tensors]  # they mean nothing: all integers
    if len(tensors) == 1:
        return stored(reshaped(images, tensors[0]), tensors[0])
    ends = np.cumsum([each.size for each in tensors])
    parts = zip(np.split(images.reshape(len(images), -1), ends[:-1], 1), tensors, strict=True)
    return joined([stored(reshaped(part, of), of) for part, of in parts])
