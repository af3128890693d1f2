"""From the arriving input to the first tensor that is held whole.

An image that streams in is pooled on the way and never exists: one row of sums is enough, and none
where each value is pooled alone. Any other first operator needs the image in memory, and then it
counts, but for a convolution over a ring that holds the rows that its window covers.
"""

from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Final, Self

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware, Memory
from pipeline.plan.vocabulary import Buffer, Index, Lin, Loop, Step, packed
from pipeline.schedules.bounds import Box, Range, all_of, part
from pipeline.schedules.draft import Draft

STREAM: Final = "stream"


@dataclass(frozen=True)
class Arriving:
    """
    Attributes:
        image: the frame's input.
        streams: it arrives element by element.
        pool: the pooling done while the image arrives, if there is one.
        start: the first tensor held whole.
        sums: the buffer in which values are added up, or compared, as they come; "" of others.
        sum_bits: of each, which hold any sum (or maximum) of a window, with its sign.
    """

    image: Tensor
    streams: bool
    pool: Pool2d | None
    start: Tensor
    sums: str = ""
    sum_bits: int = 0

    @classmethod
    def of(cls, graph: Graph, hardware: Hardware) -> Self:
        image, streams = graph.tensors[graph.input], hardware.streams_input
        readers = [op for op in graph.operators if graph.input in op.inputs]
        op = readers[0] if len(readers) == 1 else None
        if streams and isinstance(op, Pool2d) and op.stride == op.kernel:
            # a stream is read without gaps, so windows must cover the image exactly
            rows, columns = image.shape[0] % op.kernel[0], image.shape[1] % op.kernel[1]
            if rows == columns == 0 and not any(op.padding):
                least, greatest = op.partial_sums(graph.tensors, graph.constants)
                start = graph.tensors[op.output]
                alone = isinstance(op, AveragePool2d) and op.shift(graph.tensors) is not None
                sums = "" if alone else graph.beside(start.name, "sums")
                largest = max(-least, greatest)
                bits = next(bits for bits in (8, 16, 32) if largest < 1 << (bits - 1))
                return cls(image, streams, op, start, sums, bits)
        return cls(image, streams, None, image)

    @property
    def operators(self) -> tuple[Operator, ...]:
        """What is done on the way."""
        return (self.pool,) if self.pool else ()

    @property
    def beside(self) -> dict[str, int]:
        """The nibbles of each buffer that is there beside ``start`` while it is made."""
        nibbles = prod(self.start.shape[1:]) * self.sum_bits // 4
        return {self.sums: nibbles} if self.sums else {}

    def steps(self, draft: Draft) -> list[Step]:
        if not self.streams:
            draft.hold(self.start.name)
            return []
        self.opened(draft)
        start, row = draft.hold(self.start.name), Lin(0, (("row", 1),))
        each = self.taken(draft, start, (Range(row, 1), *all_of(self.start.shape[1:])))
        return [Loop("row", self.start.shape[0], (*self.begun(draft, row), *each))]

    def opened(self, draft: Draft) -> None:
        arriving(draft, self.image, self.image.name if self.pool else "")
        if self.sums:
            draft.sums(self.start.name, rows=1, bits=self.sum_bits)

    def begun(self, draft: Draft, row: Index) -> list[Step]:
        """What comes in before any pixel of ``row`` can be whole: of sums all rows but the last."""
        if self.pool is None or not self.sums:
            return []
        made = (Range(row, 1), *all_of(self.start.shape[1:]))
        clear = draft.clear(self.pool, part(draft.buffer(self.sums), made))
        before = self.pool.kernel[0] - 1
        if not before:
            return [clear]
        return [clear, Loop("part", before, (self._added(draft, made, Lin(0, (("part", 1),))),))]

    def taken(self, draft: Draft, kept: Buffer, box: Box) -> list[Step]:
        """``box`` comes in, the last row of what it is made of."""
        if self.pool is None:
            stream = draft.graph.beside(self.image.name, STREAM)
            return [draft.move(draft.buffer(stream), kept, box)]
        if not self.sums:
            return [draft.compute(self.pool, kept, box)]
        add = self._added(draft, box, Lin(self.pool.kernel[0] - 1))
        unit = (1, 1, self.start.shape[2])
        sums = part(draft.buffer(self.sums), box)
        return [add, draft.finish(self.pool, sums, part(kept, box), unit)]

    def _added(self, draft: Draft, made: Box, row: Lin) -> Step:
        """Row ``row`` of the windows of ``made``, which is in one row."""
        assert self.pool is not None
        (top, _), *across = draft.needs(self.pool, made)[self.image.name]
        top = top if isinstance(top, Lin) else Lin(top)
        low = Lin(top.const + row.const, (*top.coef, *row.coef))
        read = {self.image.name: (Range(low if low.coef else low.const, 1), *across)}
        return draft.add(self.pool, draft.buffer(self.sums), made, read)


@dataclass(frozen=True)
class ArrivingRows:
    """A convolution over the input while it arrives. A pixel of the output is made as soon as the
    last of its window is there: the image never exists as a whole, and nothing of the convolution
    is left when its last row has arrived.

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
    def of(cls, given: Arriving, graph: Graph) -> Self | None:
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


def arriving(draft: Draft, image: Tensor, name: str = "") -> None:
    """``image`` comes in through a stream, which needs no place."""
    name = name or draft.graph.beside(image.name, STREAM)
    shape, bits = image.shape, image.dtype.bits
    stream = Buffer(name, image.name, STREAM, shape, bits, packed(shape, bits))
    draft.elsewhere[name], draft.home[image.name] = stream, name
    draft.memories.append(Memory(STREAM, ceil(image.bytes), STREAM))
