"""A block of operators pixel by pixel: each makes what the next one needs next, so that of what is
between the block's ends only that is held.

Of a residual block of two 3 × 3 convolutions with images w wide that is 2w + 2 pixels and as many
as are made at once, beside the block's input, over which the sum is written.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from pipeline.graph.access import clipped
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Box
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.items import Item, Piece, by_pixel
from pipeline.search.chains.layer import PixelBox


def can_weave(flow: Flow, span: Span) -> bool:
    """Several operators on images, of which none needs all of one."""
    operators = flow.of(span)
    return len(operators) > 1 and all(
        by_pixel(op)
        and all(len(flow.tensors[name].shape) == 3 for name in (op.output, *op.inputs))
        and not op.reads_all(flow.tensors)
        for op in operators
    )


class Way(NamedTuple):
    """How a block goes: ``pixels`` of a row at once, row by row; ``by_column``: of a column, column
    by column; ``from_last``: from the last one of these on, ``backwards``: each from its end."""

    pixels: int
    by_column: bool = False
    from_last: bool = False
    backwards: bool = False


PIXEL_BY_PIXEL = tuple(Way(1, *each) for each in product((False, True), repeat=3))


def woven(flow: Flow, span: Span, way: Way) -> Item:
    """The last operator makes some pixels at once; what it needs for that is made just before."""
    op = flow.operators[span.stop - 1]
    weave, shape = _Weave(flow, span, way), flow.tensors[op.output].shape
    along, across = way.by_column, not way.by_column
    for line in weave.lines(0, shape[along]):
        for first in range(0, shape[across], way.pixels)[:: weave.step]:
            weave.make(op, weave.box(line, (first, min(first + way.pixels, shape[across]))))
    return Item(flow, span, tuple(weave.pieces))


class _Weave:
    def __init__(self, flow: Flow, span: Span, way: Way) -> None:
        self.flow, self.way, self.pieces = flow, way, list[Piece]()
        self.step = -1 if way.backwards else 1
        self.makers = {op.output: op for op in flow.of(span)}
        self.done = {
            name: np.zeros(flow.tensors[name].shape[:2], dtype=bool) for name in self.makers
        }

    def make(self, op: Operator, made: PixelBox) -> None:
        out: Box = (*made, (0, self.flow.tensors[op.output].shape[2]))
        for operand in op.reads(self.flow.tensors):
            if operand.tensor in self.makers:
                shape = self.flow.tensors[operand.tensor].shape
                rows, columns, _ = clipped(operand.region(out), shape)
                self.need(operand.tensor, (rows, columns))
        self.pieces.append(Piece(op, made))
        self.done[op.output][slice(*made[0]), slice(*made[1])] = True

    def need(self, tensor: str, box: PixelBox) -> None:
        """What is missing of it, line by line."""
        done = self.done[tensor].T if self.way.by_column else self.done[tensor]
        lines, across = box[:: -1 if self.way.by_column else 1]
        for line in self.lines(*lines):
            missing = np.flatnonzero(~done[line, slice(*across)]) + across[0]
            gap = 0 if self.way.pixels == 1 else 1  # one by one, or neighbours together
            parts = np.split(missing, np.flatnonzero(np.diff(missing) > gap) + 1)
            for part in parts[:: self.step]:
                if len(part):
                    some = self.box(line, (int(part[0]), int(part[-1]) + 1))
                    self.make(self.makers[tensor], some)

    def lines(self, first: int, stop: int) -> range:
        return range(first, stop)[:: -1 if self.way.from_last else 1]

    def box(self, line: int, across: tuple[int, int]) -> PixelBox:
        return (across, (line, line + 1)) if self.way.by_column else ((line, line + 1), across)
