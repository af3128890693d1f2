"""Weights with which images of another size are made of neighbours, along one axis each.

Matrices have a row for each new index and a column for each old one; rows add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.operators.resize import ONE_BITS
from pipeline.graph.tensor import IntArray

Floats = NDArray[np.float64]

ROUNDINGS: dict[str, Callable[[Floats], Floats]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}
WAYS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""How ONNX calls what decides where a new index lies among the old ones."""

REPEATS = {
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
}
"""Ways and roundings with which whole multiples repeat each element equally often."""


def places(extent: int, count: int, way: str, scale: float = 0.0) -> Floats:
    """Return where ``count`` new indices lie among ``extent`` old ones; ``scale``: of sizes, if it
    is not their ratio."""
    new, old = np.arange(count, dtype=np.float64), count / scale if scale else extent
    if way == "align_corners":
        return new * (extent - 1) / max(1, count - 1)
    if way == "asymmetric" or (way == "pytorch_half_pixel" and count == 1):
        return new * old / count
    return (2 * new + 1) * old / (2 * count) - 0.5


def nearest(extent: int, at: Floats, rounding: str = "floor") -> Floats:
    return spread(extent, [(ROUNDINGS[rounding](at), np.ones(len(at)))])


def linear(extent: int, at: Floats) -> Floats:
    low = np.floor(at)
    return spread(extent, [(low, 1 - (at - low)), (low + 1, at - low)])


def cubic(extent: int, at: Floats, a: float = -0.75) -> Floats:
    """Keys' cubic convolution (1981), which PyTorch has with a = -0.75."""

    def near(x: Floats) -> Floats:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Floats) -> Floats:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    low = np.floor(at)
    x = at - low
    kernels = far(x + 1), near(x), near(1 - x), far(2 - x)
    return spread(extent, [(low - 1 + n, each) for n, each in enumerate(kernels)])


def means(extent: int, count: int) -> Floats:
    """Weigh windows as PyTorch's adaptive average pooling has them, of different sizes."""
    old = np.arange(extent)
    starts = np.arange(count)[:, None] * extent // count
    stops = -(-(np.arange(count)[:, None] + 1) * extent // count)
    inside = (old >= starts) & (old < stops)
    return np.asarray(inside / inside.sum(1, keepdims=True))


def spread(extent: int, taps: list[tuple[Floats, Floats]]) -> Floats:
    """Put each tap's weights where it lies, those beyond an edge on it."""
    matrix = np.zeros((len(taps[0][0]), extent))
    for at, weights in taps:
        np.add.at(matrix, (np.arange(len(at)), at.clip(0, extent - 1).astype(int)), weights)
    return matrix


def banded(matrix: Floats) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return for each row where its weights begin, and all weights in multiples of 2**-10."""
    one = 1 << ONE_BITS
    found: IntArray = np.rint(matrix * one).astype(np.int64)
    rows = np.arange(len(found))
    found[rows, found.argmax(1)] += one - found.sum(1)
    used = found != 0
    first, last = used.argmax(1), found.shape[1] - used[:, ::-1].argmax(1)
    taps = int((last - first).max())
    first = first.clip(0, found.shape[1] - taps)
    band = found[rows[:, None], first[:, None] + np.arange(taps)]
    return tuple(map(int, first)), tuple(map(int, band.reshape(-1)))
