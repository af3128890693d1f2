"""The order in which a step's pixels are computed."""

from __future__ import annotations

from itertools import groupby, product
from math import prod

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import Box
from pipeline.plan.vocabulary import Buffer, Compute, Finish

Pixel = tuple[int, int]


def pixels(step: Compute | Finish, out: Box, disjoint: bool) -> tuple[Pixel, ...]:
    """The pixels of ``out`` in the order of the step; a vector is one pixel (0, 0).

    The generated kernels read all inputs of a pixel before they write any of it. A step whose unit
    is smaller is carried out as well by that: reading earlier and writing later within a step
    changes nothing, because no step reads what it writes. A larger unit needs ``disjoint`` input
    and output cells.

    Raises:
        ThimbleError: for an order or a unit that one pixel at a time cannot follow.
    """
    if len(out) == 1:
        return ((0, 0),)
    extents = tuple(stop - start for start, stop in out)
    unit = step.unit or (1,) * len(out)
    if prod(unit[:2]) > 1 and not disjoint:
        raise ThimbleError(
            f"generated code reads and writes {step.op} pixel by pixel, but the plan reads "
            f"{'x'.join(map(str, unit))} blocks whole before it writes over them"
        )
    sides = [range(0, extent, size) for extent, size in zip(extents, unit, strict=True)]
    origins = (step.order if isinstance(step, Compute) else ()) or product(*sides)
    every = (
        (out[0][0] + y, out[1][0] + x)
        for origin in origins
        for y in range(origin[0], min(origin[0] + unit[0], extents[0]))
        for x in range(origin[1], min(origin[1] + unit[1], extents[1]))
    )
    order = [pixel for pixel, _ in groupby(every)]  # units may be of some channels
    if len(set(order)) < len(order) and not disjoint:
        raise ThimbleError(f"generated code computes a pixel of {step.op} in one go, not twice")
    return tuple(dict.fromkeys(order))


def are_disjoint(a: Buffer, box_a: Box, b: Buffer, box_b: Box) -> bool:
    """Check whether two boxes share no nibble."""
    return a.memory != b.memory or not np.intersect1d(a.cells(box_a), b.cells(box_b)).size
