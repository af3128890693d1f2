"""Traversals of an output image as a sequence of peels: whole rows or columns off its rest.

Peeling from the top left, what is left is always the bottom right rectangle. A traversal is the
one thing in which the paper's strategies differ (Gural and Murmann, ICML 2019, section 3.4).
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.search.view.pixels import Order, PixelView
from pipeline.search.view.whole import Span

Axis = Literal["row", "column"]


class Peel(NamedTuple):
    """The output pixels of row (or column) ``at``, ``along`` it."""

    axis: Axis
    at: int
    along: range


Peels = tuple[Peel, ...]


def peel(height: int, width: int, axis: Callable[[int, int], Axis]) -> Peels:
    """Peel until nothing is left, each time along the ``axis`` for so many rows and columns that
    are gone."""
    result, top, left = list[Peel](), 0, 0
    while top < height and left < width:
        if axis(top, left) == "row":
            result.append(Peel("row", top, range(left, width)))
            top += 1
        else:
            result.append(Peel("column", left, range(top, height)))
            left += 1
    return tuple(result)


def rows(height: int, width: int) -> Peels:
    """Row-major order (section 3.4.1)."""
    return peel(height, width, lambda top, left: "row")


def columns(height: int, width: int) -> Peels:
    """Column-major order."""
    return peel(height, width, lambda top, left: "column")


def herringbone(height: int, width: int) -> Peels:
    """Always the cheaper, that is the shorter, side of what is left (section 3.4.2).

    A peel of x pixels costs D(x) = x (fout - fin) - (k - 1) fin, which grows with x.
    """
    return peel(
        height, width, lambda top, left: "row" if width - left <= height - top else "column"
    )


def single_transpose(height: int, width: int, switch: int) -> Peels:
    """Peel with one change of direction, after ``switch`` lines (section 3.4.3).

    The first direction is along the shorter side: the paper assumes height >= width and transposes
    the image otherwise.
    """
    axes: tuple[Axis, Axis] = ("row", "column") if width <= height else ("column", "row")
    return peel(height, width, lambda top, left: axes[top + left >= switch])


def in_turn(peels: Peels) -> IntArray:
    """(pixels, 2): the row and the column of each output pixel."""
    lines = [(np.full(len(line.along), line.at), np.array(line.along)) for line in peels]
    turned = [
        line[:: 1 if peel.axis == "row" else -1] for line, peel in zip(lines, peels, strict=True)
    ]
    return np.concatenate(turned, axis=1).T


def ranks(height: int, width: int, peels: Peels) -> IntArray:
    """Return the place of every output pixel in the traversal, shape (height, width)."""
    rank = np.full((height, width), -1)
    rank[tuple(in_turn(peels).T)] = np.arange(height * width)
    return rank


def ordered(view: PixelView, number: int, peels: Peels, groups: int = 1) -> Order:
    """Return one operator, by ``peels`` for each of ``groups`` of channels; made once."""
    key, op = (number, peels, groups), view.operators[number]
    if key not in view.known:
        height, width = view.pixels(op.output)[:2]

        def units() -> IntArray:
            units = np.empty((groups, height * width, 4), dtype=np.int64)
            units[..., 0], units[..., 3] = number, np.arange(groups)[:, None]
            units[..., 1:3] = in_turn(peels)
            return units.reshape(-1, 4)

        starts = np.arange(groups) * height * width
        by_rows = groups == 1 and op.slides and peels == rows(height, width)
        view.known[key] = Order(view, Span(number, number + 1), units, starts, groups, by_rows)
    return view.known[key]
