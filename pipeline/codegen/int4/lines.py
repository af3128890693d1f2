"""The order in which a step's pixels are computed."""

from __future__ import annotations

from itertools import groupby, product
from math import prod

from pipeline.codegen.int8.job import Job
from pipeline.errors import ThimbleError

Pixel = tuple[int, int]


def pixels(job: Job) -> tuple[Pixel, ...]:
    """The pixels that a step makes, in its order; a vector is one pixel (0, 0).

    The generated kernels read all inputs of a pixel before they write any of it. A step whose unit
    is smaller is carried out as well by that: reading earlier and writing later within a step
    changes nothing, because no step reads what it writes. A larger unit needs inputs
    and outputs that are apart.

    Raises:
        ThimbleError: for an order or a unit that one pixel at a time cannot follow.
    """
    step = job.step
    out = step.out.box(job.target.shape, {})
    if len(out) == 1:
        return ((0, 0),)
    extents = tuple(stop - start for start, stop in out)
    unit = step.unit or (1,) * len(out)
    if prod(unit[:2]) > 1 and not job.apart:
        raise ThimbleError(
            f"generated code reads and writes {step.op} pixel by pixel, but the plan reads "
            f"{'x'.join(map(str, unit))} blocks whole before it writes over them"
        )
    sides = [range(0, extent, size) for extent, size in zip(extents, unit, strict=True)]
    origins = step.order or product(*sides)
    every = (
        (out[0][0] + y, out[1][0] + x)
        for origin in origins
        for y in range(origin[0], min(origin[0] + unit[0], extents[0]))
        for x in range(origin[1], min(origin[1] + unit[1], extents[1]))
    )
    order = [pixel for pixel, _ in groupby(every)]  # units may be of some channels
    if len(set(order)) < len(order) and not job.apart:
        raise ThimbleError(f"generated code computes a pixel of {step.op} in one go, not twice")
    return tuple(dict.fromkeys(order))
