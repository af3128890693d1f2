"""Taps of a convolution's windows that are inside of the image, and pieces of windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import NamedTuple

from pipeline.graph.graph import Graph
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


@dataclass(frozen=True)
class Tile(Graph):
    """A convolution or a pooling of a tile alone; ``taps``: what a convolution's whole layer has
    reached, so that all its tiles have one copy of weights."""

    taps: tuple[range, ...] = ()


def reached(op: Conv2d, graph: Graph) -> tuple[range, ...]:
    """Rows and columns of the kernel from the first to the last that lies inside of the input for
    some pixel."""
    if isinstance(graph, Tile):
        return graph.taps
    both = (set().union(*inside(op, graph.tensors, axis)) for axis in (0, 1))
    return tuple(range(min(every), max(every) + 1) if every else range(0) for every in both)


def kinds(op: Conv2d, tensors: Tensors) -> list[Kind]:
    """Return all output columns, from the left on."""
    alike = groupby(enumerate(inside(op, tensors, 1)), lambda each: each[1])
    columns = [(taps, [column for column, _ in some]) for taps, some in alike]
    return [Kind(some[0], some[-1] + 1, taps) for taps, some in columns]


class Rows(NamedTuple):
    """Rows and columns of a kernel, see ``reached``, which windows are gathered from in
    pieces: a row of the kernel, or a tap."""

    rows: range
    columns: range
    channels: int
    by_tap: bool

    @classmethod
    def of(cls, op: Conv2d, graph: Graph, channels: int = 0) -> Rows:
        """``channels``: of a pass, if not all."""
        rows, columns = reached(op, graph)
        depth = graph.tensors[op.inputs[0]].shape[2]
        apart = op.dilation[1] > 1 or 0 < channels < depth
        return cls(rows, columns, channels or depth, by_tap=apart and len(columns) > 1)

    @property
    def number(self) -> int:
        """Count the pieces."""
        return len(self.rows) * (len(self.columns) if self.by_tap else 1)

    @property
    def elements(self) -> int:
        """Count those of a piece."""
        return self.channels * (1 if self.by_tap else len(self.columns))

    @property
    def size(self) -> int:
        """Count the elements of a window."""
        return self.number * self.elements

    @property
    def words(self) -> int:
        """Count words of four elements: whole ones of each piece, then what is left of all."""
        return self.number * (self.elements // 4) + -(-self.number * (self.elements % 4) // 4)
