"""Taps of a convolution's windows that are inside of the image."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import NamedTuple

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d

Taps = tuple[int, ...]


class Kind(NamedTuple):
    """Output columns ``first`` to ``stop`` whose windows have the same columns ``taps`` inside."""

    first: int
    stop: int
    taps: Taps


def inside(op: Conv2d, tensors: Tensors, axis: int) -> tuple[Taps, ...]:
    """Return the rows (``axis`` 0) or columns (1) of the kernel that are inside, for each of the
    output's."""
    extent, made = tensors[op.inputs[0]].shape[axis], tensors[op.output].shape[axis]
    kernel = tensors[op.parameters[0]].shape[axis + 1]
    return _inside(extent, made, kernel, op.stride[axis], op.padding[2 * axis], op.dilation[axis])


@cache
def _inside(
    extent: int, made: int, kernel: int, stride: int, pad: int, dilation: int
) -> tuple[Taps, ...]:
    tops = (n * stride - pad for n in range(made))
    return tuple(
        tuple(k for k in range(kernel) if 0 <= top + k * dilation < extent) for top in tops
    )


def reached_along(op: Conv2d, tensors: Tensors, axis: int) -> range:
    """Rows (``axis`` 0) or columns (1) of the kernel from the first to the last that lies inside of
    the input for some pixel."""
    every = set().union(*inside(op, tensors, axis))
    return range(min(every), max(every) + 1) if every else range(0)


def kinds(op: Conv2d, tensors: Tensors) -> list[Kind]:
    """All output columns, from the left on."""
    alike = groupby(enumerate(inside(op, tensors, 1)), lambda each: each[1])
    columns = [(taps, [column for column, _ in some]) for taps, some in alike]
    return [Kind(some[0], some[-1] + 1, taps) for taps, some in columns]
