"""A convolution over the input while it arrives: a ring holds the rows that its window covers.

A pixel of the output is made as soon as the last of its window is there: the image never exists as
a whole, and nothing of the convolution is left when its last row has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.tensor import Tensor
from pipeline.plan.vocabulary import Buffer, Index, Lin, Loop, Step
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
        place: where ``start`` lies, once that is known.
    """

    given: Arriving
    convolution: Conv2d
    start: Tensor
    ring: int
    lead: int
    place: Buffer | None = None

    @classmethod
    def of(cls, given: Arriving, graph: Graph) -> ArrivingRows | None:
        """None where the input is there from the start or the greatest of it is looked for first,
        where it is no convolution's alone, and where that begins or ends with rows of padding, has
        windows in padding alone, or skips rows."""
        readers = [op for op in graph.operators if given.start.name in op.inputs]
        op = readers[0] if len(readers) == 1 else None
        greatest = given.sums and not isinstance(given.pool, AveragePool2d)
        if not given.streams or greatest or not isinstance(op, Conv2d):
            return None
        kernel = graph.tensors[op.parameters[0]].shape[1:3]
        ring, across = ((k - 1) * d + 1 for k, d in zip(kernel, op.dilation, strict=True))
        lead = across - op.padding[2] - op.stride[1]
        last = (graph.tensors[op.output].shape[1] - 1) * op.stride[1] - op.padding[2]
        if any(op.padding[:2]) or lead < 0 or last >= given.start.shape[1]:
            return None
        if not op.stride[0] <= ring < given.start.shape[0]:
            return None
        return cls(given, op, graph.tensors[op.output], ring, lead)

    @property
    def operators(self) -> tuple[Operator, ...]:
        return (*self.given.operators, self.convolution)

    @property
    def beside(self) -> dict[str, int]:
        """The ring, behind sums that make it."""
        read = self.given.start
        ring = {read.name: self.ring * prod(read.shape[1:]) * read.dtype.bits // 4}
        return {**self.given.beside, **ring}

    def steps(self, draft: Draft) -> list[Step]:
        """Each pixel as soon as its window is there: the line never waits for more than one."""
        self.given.opened(draft)
        rows, columns, depth = self.given.start.shape
        kept = draft.hold(self.given.start.name, (self.ring, columns, depth))
        assert self.place is not None
        out = replace(self.place, memory=draft.hardware.activation_memory)
        draft.put(out)
        (height, width, channels), (down, right) = self.start.shape, self.convolution.stride

        def take(row: Index, left: Index, some: int) -> list[Step]:
            box = Range(row, 1), Range(left, some), Range(0, depth)
            return self.given.taken(draft, kept, box) if some > 0 else []

        def whole(count: int, first: int, *coef: tuple[str, int]) -> list[Step]:
            rows = (Lin(first + n, coef) if coef else first + n for n in range(count))
            both = ((*self.given.begun(draft, row), *take(row, 0, columns)) for row in rows)
            return [step for each in both for step in each]

        before, here = self.ring - down, ("row", down)
        newest = Lin(self.ring - 1, (here,))
        done, end = before + height * down, self.lead + width * right
        pixel = Range(Lin(0, (("row", 1),)), 1), Range(Lin(0, (("column", 1),)), 1)
        made = draft.compute(self.convolution, out, (*pixel, Range(0, channels)))
        each = (
            *whole(down - 1, before, here),
            *self.given.begun(draft, newest),
            *take(newest, 0, self.lead),
            Loop(
                "column", width, (*take(newest, Lin(self.lead, (("column", right),)), right), made)
            ),
            *take(newest, end, columns - end),
        )
        return [*whole(before, 0), Loop("row", height, each), *whole(rows - done, done)]
