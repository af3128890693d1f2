"""A block of operators pixel by pixel: each makes what the next one needs next, so that of what is
between the block's ends only that is held.

Of a residual block of two 3 × 3 convolutions with images w wide that is 2w + 2 pixels and as many
as are made at once, beside the block's input, over which the sum is written.
"""

from __future__ import annotations

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


def woven(flow: Flow, span: Span, pixels: int) -> Item:
    """The last operator makes so many pixels of a row at once, row by row; what it needs for that
    is made just before."""
    weave = _Weave(flow, span)
    op = flow.operators[span.stop - 1]
    height, width, _ = flow.tensors[op.output].shape
    for row in range(height):
        for first in range(0, width, pixels):
            weave.make(op, ((row, row + 1), (first, min(first + pixels, width))))
    return Item(flow, span, tuple(weave.pieces))


class _Weave:
    def __init__(self, flow: Flow, span: Span) -> None:
        self.flow, self.pieces = flow, list[Piece]()
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
        """What is missing of it, row by row."""
        for row in range(*box[0]):
            missing = np.flatnonzero(~self.done[tensor][row, slice(*box[1])]) + box[1][0]
            for part in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1):
                if len(part):
                    columns = int(part[0]), int(part[-1]) + 1
                    self.make(self.makers[tensor], ((row, row + 1), columns))
