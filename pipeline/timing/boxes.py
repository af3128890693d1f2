"""The boxes of a slice in all of its runs."""

from __future__ import annotations

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Slice
from pipeline.timing.unroll import Runs


def boxes(piece: Slice, shape: tuple[int, ...], runs: Runs) -> tuple[IntArray, IntArray]:
    """Low corners and extents of ``piece``, clipped to ``shape``: each (runs, axes)."""
    if runs.count == 1:  # most steps of an unrolled plan: without numpy
        env = {name: int(values[0]) for name, values in runs.variables.items()}
        box = piece.box(shape, env)
        return np.array([[low for low, _ in box]]), np.array([[stop - low for low, stop in box]])
    lows = np.stack([runs.values(low) for low in piece.lo], axis=1)
    stops = np.minimum(lows + np.array(piece.size), np.array(shape))
    lows = np.maximum(lows, 0)
    return lows, np.maximum(stops - lows, 0)
