"""Pictures of nothing: random, seeded, with structure at every scale, as photographs have.

What differs between two images of plain noise is averaged away after a few layers; what differs
between these is not. For running statistics, calibration and checks where there is no data set.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
MEAN, DEVIATION = 128.0, 64.0


def pictures(count: int, shape: tuple[int, int, int], seed: int) -> U8:
    """``count`` images (n, h, w, c); equal arguments give equal ones.

    A sum of random grids of 1, 2, 4, 8 … cells a side, all of equal strength: the amplitude falls
    with 1 / frequency (Field 1987, "Relations between the statistics of natural images and …").
    """
    height, width, channels = shape
    random = np.random.default_rng(seed)
    total = np.zeros((count, *shape))
    octaves = max(1, max(height, width).bit_length())
    for octave in range(octaves):
        rows, columns = min(height, 2**octave), min(width, 2**octave)
        grid = random.standard_normal((count, rows, columns, channels))
        total += _spread(_spread(grid, height, 1), width, 2)
    total *= DEVIATION / np.sqrt(octaves)
    return np.clip(np.round(total + MEAN), 0, 255).astype(np.uint8)


def for_inputs(count: int, shapes: Sequence[tuple[int, ...]], seed: int) -> U8:
    """Pictures for inputs of up to three axes, (n, h, w, c); for several (n, elements), those for
    one after the other."""
    images = ((*(1,) * (3 - len(shape)), *shape) for shape in shapes)
    parts = [pictures(count, (h, w, c), seed + n) for n, (h, w, c) in enumerate(images)]
    return parts[0] if len(parts) == 1 else np.concatenate([p.reshape(count, -1) for p in parts], 1)


def _spread(grid: npt.NDArray[np.float64], size: int, axis: int) -> npt.NDArray[np.float64]:
    """``size`` places along ``axis``: linear interpolation between the cells' centres, constant at
    the ends."""
    cells = grid.shape[axis]
    places = ((np.arange(size) + 0.5) * cells / size - 0.5).clip(0, cells - 1)
    low = places.astype(np.int64)
    share = (places - low).reshape(-1, *(1,) * (grid.ndim - 1 - axis))
    high = np.minimum(low + 1, cells - 1)
    result: npt.NDArray[np.float64] = (
        grid.take(low, axis) * (1 - share) + grid.take(high, axis) * share
    )
    return result
