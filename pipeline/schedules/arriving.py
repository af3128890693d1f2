"""From the arriving input to the first tensor that is held whole.

An image that streams in is pooled on the way and never exists: one row of sums is enough, and none
where each value is pooled alone. Any other first operator needs the image in memory, and then it
counts, but for a convolution over a ring that holds the rows that its window covers.
"""

from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Final, Literal, Self

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware, Memory
from pipeline.plan.vocabulary import Buffer, Clear, Index, Lin, Loop, Step, packed
from pipeline.schedules.bounds import Box, Range, all_of, part
from pipeline.schedules.draft import Draft

STREAM: Final = "stream"
FRAME: Final = "frame"


@dataclass(frozen=True)
class Arriving:
    """The input, and what is made of it while it comes in.

    Attributes:
        streams: it arrives element by element.
        pool: the pooling done while the image arrives, if there is one.
        given: the input, or what the pool makes of it.
        start: the first tensor held whole.
        sums: the buffer in which values are added up, or compared, as they come; "" of others.
        sum_bits: of each, which hold any sum (or maximum) of a window, with its sign.
        convolution: makes ``start`` of ``given``, if that is not what is held: see ``convolved``.
        ring: rows that its window covers.
        lead: columns that have to be there before those that a row's first pixel waits for.
        place: where what it makes lies, once that is known.
        others: further inputs, which are there from the start as the first then is.
    """

    streams: bool
    pool: Pool2d | None
    given: Tensor
    start: Tensor
    sums: str = ""
    sum_bits: int = 0
    convolution: Conv2d | None = None
    ring: int = 0
    lead: int = 0
    place: Buffer | None = None
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, graph: Graph, hardware: Hardware) -> Self:
        image, *others = (graph.tensors[name] for name in graph.starts)
        streams = streaming(graph, hardware)
        op = _reader(graph, image.name)
        if streams and isinstance(op, Pool2d) and op.stride == op.kernel and op.dilation == (1, 1):
            # a stream is read without offsets, so windows must cover the image exactly
            rows, columns = image.shape[0] % op.kernel[0], image.shape[1] % op.kernel[1]
            if rows == columns == 0 and not any(op.padding):
                least, greatest = op.partial_sums(graph.tensors, graph.constants)
                start = graph.tensors[op.output]
                alone = isinstance(op, AveragePool2d) and op.shift(graph.tensors) is not None
                sums = "" if alone else graph.beside(start.name, "sums")
                largest = max(-least, greatest)
                bits = next(bits for bits in (8, 16, 32) if largest < 1 << (bits - 1))
                return cls(streams, op, start, start, sums, bits)
        return cls(streams, None, image, image, others=tuple(each.name for each in others))

    def convolved(self, graph: Graph, hardware: Hardware) -> Self:
        """With the convolution over it done while it comes in: a pixel is made as soon as the last
        of its window is there, so that the line never waits for more than one; ``given`` never
        exists as a whole, and nothing is left to do when its last row has arrived.

        Raises:
            ThimbleError: where the input is there from the start or the greatest of it is looked
                for first, where it is no convolution's alone, and where that begins or ends with
                rows of padding, has windows in padding alone, or skips rows.
        """
        op = _reader(graph, self.given.name)
        added = not self.sums or isinstance(self.pool, AveragePool2d)
        if self.streams and added and isinstance(op, Conv2d):
            kernel, start = graph.tensors[op.parameters[0]].shape[1:3], graph.tensors[op.output]
            ring, across = ((k - 1) * d + 1 for k, d in zip(kernel, op.dilation, strict=True))
            lead = across - op.padding[2] - op.stride[1]
            last = (start.shape[1] - 1) * op.stride[1] - op.padding[2]
            read = not any(op.padding[:2]) and lead >= 0 and last < self.given.shape[1]
            if read and op.stride[0] <= ring < self.given.shape[0]:
                return replace(self, start=start, convolution=op, ring=ring, lead=lead)
        raise ThimbleError(
            "strategy.convolve_arriving: the input has to stream in "
            "(hardware.streams_input=true), and a convolution without rows of padding to read "
            f"it, or what an average pool makes of it; {graph.name} on {hardware.name} has no "
            "such one: leave strategy.convolve_arriving out"
        )

    @property
    def operators(self) -> tuple[Operator, ...]:
        """Return what is done while the input arrives."""
        return tuple(op for op in (self.pool, self.convolution) if op)

    @property
    def starts(self) -> tuple[str, ...]:
        """Return ``start``, and what is held beside it from the start."""
        return self.start.name, *self.others

    @property
    def beside(self) -> dict[str, int]:
        """The nibbles of each buffer that is there beside ``start`` while it is made: sums, and a
        ring behind them."""
        name, row = self.given.name, prod(self.given.shape[1:])
        sums = {self.sums: row * self.sum_bits // 4} if self.sums else {}
        return sums | ({name: self.ring * row * self.given.dtype.bits // 4} if self.ring else {})

    def steps(self, draft: Draft) -> list[Step]:
        if not self.streams:
            for name in self.starts:
                draft.hold(name)
            return []
        self.opened(draft)
        (rows, *row), op = self.given.shape, self.convolution
        kept = draft.hold(self.given.name, (self.ring or rows, *row))

        def whole(*rows: Index) -> list[Step]:
            boxes = ((Range(row, 1), *all_of(self.given.shape[1:])) for row in rows)
            both = ((*self.begun(draft, b[0].low), *self.taken(draft, kept, b)) for b in boxes)
            return [step for each in both for step in each]

        if op is None:
            return [Loop("row", rows, tuple(whole(Lin(0, (("row", 1),)))))]
        assert self.place is not None
        out = replace(self.place, memory=draft.hardware.activation_memory)
        draft.put(out)
        (columns, depth), (height, width, channels), (down, right) = row, out.shape, op.stride

        def take(left: Index, some: int) -> list[Step]:
            box = Range(newest, 1), Range(left, some), Range(0, depth)
            return self.taken(draft, kept, box) if some > 0 else []

        before, here, end = self.ring - down, ("row", down), self.lead + width * right
        newest, done = Lin(self.ring - 1, (here,)), before + height * down
        pixel = Range(Lin(0, (("row", 1),)), 1), Range(Lin(0, (("column", 1),)), 1)
        made = draft.compute(op, out, (*pixel, Range(0, channels)))
        each = (
            *whole(*(Lin(before + n, (here,)) for n in range(down - 1))),
            *self.begun(draft, newest),
            *take(0, self.lead),
            Loop("column", width, (*take(Lin(self.lead, (("column", right),)), right), made)),
            *take(end, columns - end),
        )
        return [*whole(*range(before)), Loop("row", height, each), *whole(*range(done, rows))]

    def opened(self, draft: Draft) -> None:
        arriving(draft, draft.graph.start if self.pool else "")
        if self.sums:
            draft.sums(self.given.name, rows=1, bits=self.sum_bits)

    def begun(self, draft: Draft, row: Index) -> list[Step]:
        """Return the steps before any pixel of ``row`` is whole: of sums, all rows but the last."""
        if self.pool is None or not self.sums:
            return []
        made = (Range(row, 1), *all_of(self.given.shape[1:]))
        clear = Clear(self.pool.name, part(draft.buffer(self.sums), made))
        before = self.pool.kernel[0] - 1
        loop = Loop("part", before, (self._added(draft, made, Lin(0, (("part", 1),))),))
        return [clear, *[loop] * bool(before)]

    def taken(self, draft: Draft, kept: Buffer, box: Box) -> list[Step]:
        """``box`` comes in, the last row of what it is made of."""
        if self.pool is None:
            (stream,) = draft.elsewhere.values()
            return [draft.move(stream, kept, box)]
        if not self.sums:
            return [draft.compute(self.pool, kept, box)]
        add = self._added(draft, box, self.pool.kernel[0] - 1)
        unit = (1, 1, self.given.shape[2])
        sums = part(draft.buffer(self.sums), box)
        return [add, draft.finish(self.pool, sums, part(kept, box), unit)]

    def _added(self, draft: Draft, made: Box, row: Index) -> Step:
        """Row ``row`` of the windows of ``made``, which is in one row."""
        assert self.pool is not None
        image = draft.graph.start
        (top, _), *across = draft.needs(self.pool, made)[image]
        read = {image: (Range(top + row, 1), *across)}
        return draft.add(self.pool, draft.buffer(self.sums), made, read)


def streaming(graph: Graph, hardware: Hardware) -> bool:
    """Check whether the input is read as it comes: the only one, where the board lets it."""
    return hardware.streams_input and not hardware.input_again and len(graph.starts) == 1


def lasting(graph: Graph, hardware: Hardware) -> bool:
    """Check whether rows of the input can be read again and again where it lies: the only one, of
    whole bytes, on cores whose code is told where."""
    bytes_ = graph.tensors[graph.starts[0]].dtype.bits >= 8 and hardware.core != "avr"
    return hardware.input_again and len(graph.starts) == 1 and bytes_


def _reader(graph: Graph, tensor: str) -> Operator | None:
    """Return the operator that alone reads ``tensor``."""
    readers = [op for op in graph.operators if tensor in op.inputs]
    return readers[0] if len(readers) == 1 else None


def arriving(draft: Draft, name: str = "") -> None:
    """The input comes in through a stream, which needs no place."""
    _brought(draft, STREAM, name)


def lying(draft: Draft) -> None:
    """Leave the input where it is read from, which needs no place."""
    _brought(draft, FRAME, draft.graph.start)


def _brought(draft: Draft, by: Literal["stream", "frame"], name: str) -> None:
    image = draft.graph.tensors[draft.graph.start]
    name, shape = name or draft.graph.beside(image.name, by), image.shape
    bits = image.dtype.bits
    found = Buffer(name, image.name, by, shape, bits, packed(shape, bits))
    draft.elsewhere[name], draft.home[image.name] = found, name
    draft.memories.append(Memory(by, ceil(image.bytes), by))
