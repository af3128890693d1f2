"""Pictures of nothing: random, seeded, with structure at every scale, as photographs have.

What differs between two images of plain noise is averaged away after a few layers; what differs
between these is not. For running statistics, calibration and checks where there is no data set.
"""

from __future__ import annotations

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
        tall = np.tensordot(_spread(height, rows), grid, (1, 1))  # (h, n, columns, c)
        total += np.einsum("hnkc,wk->nhwc", tall, _spread(width, columns), optimize=True)
    total *= DEVIATION / np.sqrt(octaves)
    return np.clip(np.round(total + MEAN), 0, 255).astype(np.uint8)


def _spread(size: int, cells: int) -> npt.NDArray[np.float64]:
    """(size, cells): linear interpolation between the cells' centres, constant at the ends."""
    places = (np.arange(size) + 0.5) * cells / size - 0.5
    result: npt.NDArray[np.float64] = np.stack(
        [np.interp(places, np.arange(cells), column) for column in np.eye(cells)], axis=1
    )
    return result
