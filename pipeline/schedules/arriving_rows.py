"""A convolution over the input while it arrives: a ring holds the rows that its window covers.

A pixel of the output is made as soon as the last of its window is there: the image never exists as
a whole, and nothing of the convolution is left when its last row has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import Tensor
from pipeline.plan.vocabulary import Index, Lin, Loop, Step
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.bounds import Range
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class ArrivingRows:
    """
    Attributes:
        given: the input, or what a pool makes of each of its values: what the convolution reads.
        convolution: makes ``start``, the first tensor held whole.
        ring: rows that its window covers.
        lead: columns that have to be there before those that a row's first pixel waits for.
    """

    given: Arriving
    convolution: Conv2d
    start: Tensor
    ring: int
    lead: int

    @classmethod
    def of(cls, given: Arriving, graph: Graph) -> ArrivingRows | None:
        """None where the input is there from the start or has to be summed up first, where it is no
        convolution's alone, and where that begins or ends with rows of padding, or skips some."""
        readers = [op for op in graph.operators if given.start.name in op.inputs]
        op = readers[0] if len(readers) == 1 else None
        if not given.streams or given.sums or not isinstance(op, Conv2d):
            return None
        kernel = graph.tensors[op.parameters[0]].shape[1:3]
        ring, across = ((k - 1) * d + 1 for k, d in zip(kernel, op.dilation, strict=True))
        lead = across - op.padding[2] - op.stride[1]
        if any(op.padding[:2]) or lead < 0 or not op.stride[0] <= ring < given.start.shape[0]:
            return None
        return cls(given, op, graph.tensors[op.output], ring, lead)

    @property
    def operators(self) -> tuple[Operator, ...]:
        return (*self.given.operators, self.convolution)

    @property
    def beside(self) -> tuple[str, int]:
        """The ring."""
        read = self.given.start
        return read.name, self.ring * prod(read.shape[1:]) * read.dtype.bits // 4

    def steps(self, draft: Draft) -> list[Step]:
        """Each pixel as soon as its window is there: the line never waits for more than one."""
        self.given.opened(draft)
        rows, columns, depth = self.given.start.shape
        kept = draft.hold(self.given.start.name, (self.ring, columns, depth))
        out = draft.hold(self.start.name)
        (height, width, channels), (down, right) = self.start.shape, self.convolution.stride

        def take(row: Index, left: Index, some: int) -> list[Step]:
            box = Range(row, 1), Range(left, some), Range(0, depth)
            return [self.given.taken(draft, kept, box)] if some > 0 else []

        def whole(count: int, first: int, *coef: tuple[str, int]) -> list[Step]:
            rows = (Lin(first + n, coef) if coef else first + n for n in range(count))
            return [step for row in rows for step in take(row, 0, columns)]

        before, here = self.ring - down, ("row", down)
        newest = Lin(self.ring - 1, (here,))
        done, end = before + height * down, self.lead + width * right
        pixel = Range(Lin(0, (("row", 1),)), 1), Range(Lin(0, (("column", 1),)), 1)
        made = draft.compute(self.convolution, out, (*pixel, Range(0, channels)))
        each = (
            *whole(down - 1, before, here),
            *take(newest, 0, self.lead),
            Loop(
                "column", width, (*take(newest, Lin(self.lead, (("column", right),)), right), made)
            ),
            *take(newest, end, columns - end),
        )
        return [*whole(before, 0), Loop("row", height, each), *whole(rows - done, done)]
