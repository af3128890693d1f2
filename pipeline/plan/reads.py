"""Elements that a step reads: index sets along each axis, and the last read of each element.

Everything here follows from an operator's declared windows (``graph/access.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from pipeline.errors import PlanError
from pipeline.graph.access import Operand, Window
from pipeline.graph.tensor import Box, IntArray

NEVER = -1


def positions(window: Window, out: Box) -> IntArray:
    """Indices read along one axis: shape (outputs along ``window.axis``, count), unclipped."""
    start, stop = (0, 1) if window.axis is None else out[window.axis]
    first = np.arange(start, stop) // window.divide * window.stride + window.offset
    if window.axis is None:
        first = np.array([window.offset])
    return np.asarray(first[:, None] + np.arange(window.count) * window.dilation, dtype=np.int64)


Axis = range | IntArray
"""Indices along one axis, ascending."""


def array(axis: Axis) -> IntArray:
    return np.asarray(axis, dtype=np.int64)  # of none, too


def read_indices(operand: Operand, out: Box, available: Box) -> list[Axis]:
    """The indices along each axis of ``operand`` that outputs ``out`` read from ``available``."""
    return [
        _indices(window, out, low, high)
        for window, (low, high) in zip(operand.windows, available, strict=True)
    ]


def _indices(window: Window, out: Box, low: int, high: int) -> Axis:
    start, stop = (0, 1) if window.axis is None else out[window.axis]
    moves = start // window.divide < (stop - 1) // window.divide
    dense = window.dilation == 1 or window.count == 1
    if dense and start < stop and (not moves or window.stride <= window.count):
        first, last = window.span(start, stop)  # the windows leave nothing out
        return range(max(low, first), max(low, first, min(high, last)))
    index = np.unique(positions(window, out))
    return progression(index[(index >= low) & (index < high)])


def progression(index: IntArray) -> Axis:
    """``index`` (ascending) as a range if it is evenly spaced."""
    if len(index) < 2:
        return range(int(index[0]), int(index[0]) + 1) if len(index) else range(0)
    step = int(index[1] - index[0])
    if len(index) * step != int(index[-1]) - int(index[0]) + step or (np.diff(index) != step).any():
        return index
    return range(int(index[0]), int(index[-1]) + 1, step)


def reads_all(operand: Operand, out: Box, available: Box, whole: Box) -> bool:
    """Check whether ``available`` holds all that ``out`` reads of the tensor's box ``whole``."""
    for window, (low, high), (start, stop) in zip(operand.windows, available, whole, strict=True):
        first, last = window.span(*((0, 1) if window.axis is None else out[window.axis]))
        if max(first, start) < low or high < min(last, stop):  # but for what windows leave out
            index = positions(window, out)
            inside = (index >= start) & (index < stop)
            if (inside & ((index < low) | (index >= high))).any():
                return False
    return True


def read_times(
    operand: Operand, out: Box, times: IntArray, indices: Sequence[Axis], last: bool
) -> IntArray:
    """Find when each element of the grid ``indices`` is read: latest (or earliest) in ``times``.

    ``times`` has the shape of ``out``. Windows are a product over axes, so the extremum over
    all outputs that read an element is taken one axis at a time. Returns shape
    (len(indices[0]), len(indices[1]), …).
    """
    never = NEVER if last else np.iinfo(np.int64).max
    extremum = np.maximum if last else np.minimum
    used = [window.axis for window in operand.windows if window.axis is not None]
    assert len(set(used)) == len(used), "an output axis moves one window of an operand"
    unused = tuple(axis for axis in range(len(out)) if axis not in used)
    grid = extremum.reduce(times, axis=unused) if unused else times
    axes = [axis for axis in range(len(out)) if axis in used]
    for window, index in zip(operand.windows, map(array, indices), strict=True):
        if window.axis is None:
            grid = np.broadcast_to(grid[..., None], (*grid.shape, len(index)))
            continue
        axis = axes.index(window.axis)
        moved = np.moveaxis(grid, axis, 0)
        reads = positions(window, out)
        result = np.full((len(index), *moved.shape[1:]), never, dtype=np.int64)
        for column in range(reads.shape[1]):
            place = np.searchsorted(index, reads[:, column])
            hit = place < len(index)
            hit[hit] = index[place[hit]] == reads[hit, column]
            if window.divide == 1:  # no two outputs share a position of the window
                result[place[hit]] = extremum(result[place[hit]], moved[hit])
            else:
                extremum.at(result, place[hit], moved[hit])
        grid = np.moveaxis(result, 0, -1)
        axes.pop(axis)
    return np.asarray(grid)


def check_units(
    extents: tuple[int, ...], unit: tuple[int, ...], order: tuple[tuple[int, ...], ...]
) -> None:
    """
    Raises:
        PlanError: when ``order`` does not name the origin of every block exactly once.
    """
    if unit and (len(unit) != len(extents) or min(unit) < 1):
        raise PlanError(f"units of {unit} do not divide {extents}")
    if not order:
        return
    steps = unit or (1,) * len(extents)
    number = prod(-(-extent // step) for extent, step in zip(extents, steps, strict=True))
    if len(order) != number:
        raise PlanError(f"the order names {len(order)} of {number} units")
    wanted = product(*(range(0, extent, step) for extent, step in zip(extents, steps, strict=True)))
    if sorted(order) != list(wanted):
        raise PlanError("the order does not name the origin of each unit once")


def unit_times(
    extents: tuple[int, ...], unit: tuple[int, ...], order: tuple[tuple[int, ...], ...]
) -> IntArray:
    """Return the number of the block that computes each element of a slice with the given extents.

    Raises:
        PlanError: as ``check_units`` does.
    """
    check_units(extents, unit, order)
    unit = unit or (1,) * len(extents)
    block = [min(step, extent) for step, extent in zip(unit, extents, strict=True)]
    grid = tuple(-(-extent // step) for extent, step in zip(extents, block, strict=True))
    number = np.arange(prod(grid)).reshape(grid)
    for n, origin in enumerate(order):
        number[tuple(o // step for o, step in zip(origin, block, strict=True))] = n
    for axis, (extent, step) in enumerate(zip(extents, block, strict=True)):
        if step > 1:
            number = number.repeat(step, axis=axis).take(range(extent), axis=axis)
    return np.asarray(number, dtype=np.int64)
