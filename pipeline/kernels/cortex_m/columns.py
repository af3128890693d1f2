"""Output columns by which of their windows' columns are inside of the image."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d


@dataclass(frozen=True)
class Kind:
    """Output columns ``first`` to ``stop`` whose windows have the same columns ``taps`` inside."""

    first: int
    stop: int
    taps: tuple[int, ...]


def kinds(op: Conv2d, tensors: Tensors) -> list[Kind]:
    """All output columns, from the left on."""
    width, kernel = tensors[op.inputs[0]].shape[1], tensors[op.parameters[0]].shape[2]
    found: list[Kind] = []
    for column in range(tensors[op.output].shape[1]):
        first = column * op.stride[1] - op.padding[2]
        taps = tuple(k for k in range(kernel) if 0 <= first + k * op.dilation[1] < width)
        if found and found[-1].taps == taps:
            found[-1] = replace(found[-1], stop=column + 1)
        else:
            found.append(Kind(column, column + 1, taps))
    return found
