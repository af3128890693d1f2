"""Operands of element-wise operators, broadcast as numpy does: trailing axes are aligned."""

from __future__ import annotations

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Window
from pipeline.graph.operator import Regions, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


def shape_of(name: str, operands: tuple[str, ...], tensors: Tensors) -> tuple[int, ...]:
    """Return the shape that all operands broadcast to; raises ThimbleError when there is none."""
    shapes = [tensors[operand].shape for operand in operands]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join("x".join(map(str, shape)) for shape in shapes)
        raise ThimbleError(f"{name}: {listed} do not go together element by element") from None


def operand(tensor: str, tensors: Tensors, rank: int) -> Operand:
    """One element of ``tensor`` for each output element; an axis of extent 1 stays in place."""
    shape = tensors[tensor].shape
    first = rank - len(shape)
    return Operand(
        tensor, tuple(Window(None if extent == 1 else first + d) for d, extent in enumerate(shape))
    )


def centred(operand: Operand, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
    """Stored integers less the zero point, 0 where absent: (n, extents of what ``out`` reads)."""
    zero = tensors[operand.tensor].zero_point
    return windowed(regions[operand.tensor], operand.region(out), zero) - zero


def values(operand: Operand, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
    """Stored integers less the zero point, 0 where absent: (n, …), to broadcast against ``out``."""
    x = centred(operand, tensors, out, regions)
    return x.reshape(len(x), *([1] * (len(out) + 1 - x.ndim)), *x.shape[1:])


def extremes(tensor: str, tensors: Tensors) -> IntArray:
    """Return the least and greatest of the stored integers of ``tensor``, less its zero point, and
    of 0: what is absent."""
    dtype, zero = tensors[tensor].dtype, tensors[tensor].zero_point
    return np.array([min(0, dtype.minimum - zero), max(0, dtype.maximum - zero)])
