"""The order in which a step's pixels are computed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
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
    order: list[Pixel] = []
    for pixel in _visits(step, extents, unit):
        here = (out[0][0] + pixel[0], out[1][0] + pixel[1])
        if not order or order[-1] != here:
            order.append(here)
    if len(set(order)) < len(order):
        if not disjoint:
            raise ThimbleError(f"generated code computes a pixel of {step.op} in one go, not twice")
        order = list(dict.fromkeys(order))
    return tuple(order)


def _visits(
    step: Compute | Finish, extents: tuple[int, ...], unit: tuple[int, ...]
) -> Iterator[Pixel]:
    order = step.order if isinstance(step, Compute) else ()
    origins = order or product(
        *(range(0, extent, size) for extent, size in zip(extents, unit, strict=True))
    )
    for origin in origins:
        for y in range(origin[0], min(origin[0] + unit[0], extents[0])):
            for x in range(origin[1], min(origin[1] + unit[1], extents[1])):
                yield y, x


def are_disjoint(a: Buffer, box_a: Box, b: Buffer, box_b: Box) -> bool:
    """Whether two boxes share no nibble."""
    return a.memory != b.memory or not np.intersect1d(a.cells(box_a), b.cells(box_b)).size
