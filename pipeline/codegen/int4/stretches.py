"""What is computed nibble by nibble, as stretches of memory that a loop goes through."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray

Stretch = tuple[int, ...]
"""First nibbles, of what is read and at last of what is written, and how many follow them."""


def stretches(name: str, pixels: Iterable[IntArray]) -> list[Stretch]:
    """The fewest in the order of ``pixels``, each (places, channels): where its elements are read,
    and in the last row written.

    Raises:
        ThimbleError: an element would be written where one of its pixel is still to be read.
    """
    found = list[Stretch]()
    for cells in pixels:
        _check(name, cells)
        for cell in cells.T.tolist():
            if found and all(a + found[-1][-1] == b for a, b in zip(found[-1], cell, strict=False)):
                found[-1] = (*found[-1][:-1], found[-1][-1] + 1)
            else:
                found.append((*cell, 1))
    return found


def _check(name: str, cells: IntArray) -> None:
    *reads, written = cells
    later = np.arange(len(written))[:, None] < np.arange(len(written))
    if any(((written[:, None] == read) & later).any() for read in reads):
        raise ThimbleError(
            f"{name}: generated code writes each element before it reads the next; try another "
            "strategy"
        )
