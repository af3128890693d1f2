"""Output columns by which of their windows' columns are inside of the image."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d


class Kind(NamedTuple):
    """Output columns ``first`` to ``stop`` whose windows have the same columns ``taps`` inside."""

    first: int
    stop: int
    taps: tuple[int, ...]


def kinds(op: Conv2d, tensors: Tensors) -> list[Kind]:
    """All output columns, from the left on."""
    width, kernel = tensors[op.inputs[0]].shape[1], tensors[op.parameters[0]].shape[2]

    def taps(column: int) -> tuple[int, ...]:
        first = column * op.stride[1] - op.padding[2]
        return tuple(k for k in range(kernel) if 0 <= first + k * op.dilation[1] < width)

    alike = [(some, [*each]) for some, each in groupby(range(tensors[op.output].shape[1]), taps)]
    return [Kind(columns[0], columns[-1] + 1, some) for some, columns in alike]
