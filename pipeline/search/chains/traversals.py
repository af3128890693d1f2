"""Traversals of an output image as a sequence of peels: whole rows or columns off its rest.

Peeling from the top left, what is left is always the bottom right rectangle. A traversal is the
one thing in which the paper's strategies differ (section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.graph.tensor import IntArray

Axis = Literal["row", "column"]


@dataclass(frozen=True)
class Peel:
    """The output pixels of row (or column) ``index`` from ``start`` to ``stop`` (exclusive), every
    ``step``-th."""

    axis: Axis
    index: int
    start: int
    stop: int
    step: int = 1

    def __len__(self) -> int:
        return len(self.along)

    @property
    def along(self) -> range:
        return range(self.start, self.stop, self.step)

    def pixels(self) -> Iterator[tuple[int, int]]:
        """(row, column) in the order they are computed."""
        for other in self.along:
            yield (self.index, other) if self.axis == "row" else (other, self.index)


Peels = tuple[Peel, ...]


def peel(height: int, width: int, axes: Sequence[Axis]) -> Peels:
    """Peel along ``axes``, one after the other, until nothing is left."""
    result, top, left = [], 0, 0
    for axis in axes:
        if top == height or left == width:
            break
        if axis == "row":
            result.append(Peel("row", top, left, width))
            top += 1
        else:
            result.append(Peel("column", left, top, height))
            left += 1
    return tuple(result)


def rows(height: int, width: int) -> Peels:
    """Row-major order (section 3.4.1)."""
    return peel(height, width, ["row"] * height)


def columns(height: int, width: int) -> Peels:
    """Column-major order."""
    return peel(height, width, ["column"] * width)


def herringbone(height: int, width: int) -> Peels:
    """Always the cheaper, that is the shorter, side of what is left (section 3.4.2).

    A peel of x pixels costs D(x) = x (fout - fin) - (k - 1) fin, which grows with x.
    """
    axes: list[Axis] = []
    while height and width:
        if width <= height:
            axes.append("row")
            height -= 1
        else:
            axes.append("column")
            width -= 1
    return peel(height + axes.count("row"), width + axes.count("column"), axes)


def single_transposes(height: int, width: int) -> Iterator[Peels]:
    """All that change direction at most once, the latest change first (section 3.4.3)."""
    return (single_transpose(height, width, n) for n in range(max(height, width), -1, -1))


def single_transpose(height: int, width: int, switch: int) -> Peels:
    """That which changes direction after ``switch`` lines.

    The first direction is along the shorter side: the paper assumes height >= width and transposes
    the image otherwise.
    """
    first: Axis = "row" if width <= height else "column"
    second: Axis = "column" if width <= height else "row"
    return peel(height, width, [*[first] * switch, *[second] * min(height, width)])


def ranks(height: int, width: int, peels: Peels) -> IntArray:
    """The place of every output pixel in the traversal, shape (height, width)."""
    rank, done = np.full((height, width), -1, dtype=np.int64), 0
    for line in peels:
        side = rank[line.index] if line.axis == "row" else rank[:, line.index]
        along = line.along
        places = np.arange(along.start, along.stop, along.step)
        side[places] = np.arange(done, done + len(places))
        done += len(places)
    return rank
