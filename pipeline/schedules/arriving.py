"""From the arriving input to the first tensor that is held whole.

An image that streams in is pooled on the way and never exists: one row of sums is enough, and none
where each value is pooled alone. Any other first operator needs the image in memory, and then it
counts, but for a convolution row by row (``arriving_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Final

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware, Memory
from pipeline.plan.vocabulary import Buffer, Index, Lin, Loop, Step, packed
from pipeline.schedules.bounds import Box, Range, all_of, part
from pipeline.schedules.draft import Draft

STREAM: Final = "stream"

NONE = Lin()


@dataclass(frozen=True)
class Arriving:
    """
    Attributes:
        image: the frame's input.
        streams: it arrives element by element.
        pool: the pooling done while the image arrives, if there is one.
        start: the first tensor held whole.
        largest: the greatest magnitude of any sum (or maximum) of a window.
        sums: the buffer in which values are added up, or compared, as they come; "" of others.
    """

    image: Tensor
    streams: bool
    pool: Pool2d | None
    start: Tensor
    largest: int = 0
    sums: str = ""

    @classmethod
    def of(cls, graph: Graph, hardware: Hardware) -> Arriving:
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
                return cls(image, streams, op, start, max(-least, greatest), sums)
        return cls(image, streams, None, image)

    @property
    def sum_bits(self) -> int:
        """Width of an accumulator that holds any sum of a window, with its sign."""
        return next(bits for bits in (8, 16, 32) if self.largest < 1 << (bits - 1))

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
        clear = draft.clear(self.pool, part(self._sums(draft), made))
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
        sums = part(self._sums(draft), box)
        return [add, draft.finish(self.pool, sums, part(kept, box), unit)]

    def _sums(self, draft: Draft) -> Buffer:
        return draft.buffer(self.sums)

    def _added(self, draft: Draft, made: Box, row: Lin) -> Step:
        """Row ``row`` of the windows of ``made``, which is in one row."""
        assert self.pool is not None
        (height, width), (y, x, channels) = self.pool.kernel, made
        image = Range(_times(y.low, height, row), 1), Range(_times(x.low, width), width * x.size)
        read: Box = (*image, channels)
        return draft.add(self.pool, self._sums(draft), made, {self.image.name: read})


def _times(index: Index, factor: int, more: Lin = NONE) -> Index:
    """``index * factor + more``."""
    line = Lin(index) if isinstance(index, int) else index
    scaled = tuple((name, by * factor) for name, by in line.coef)
    found = Lin(line.const * factor + more.const, (*scaled, *more.coef))
    return found if found.coef else found.const


def arriving(draft: Draft, image: Tensor, name: str = "") -> Buffer:
    """The stream that ``image`` comes in by."""
    shape, bits = image.shape, image.dtype.bits
    memory = Memory(STREAM, ceil(image.bytes), STREAM)
    called = name or draft.graph.beside(image.name, STREAM)
    return draft.arrives(
        Buffer(called, image.name, STREAM, shape, bits, packed(shape, bits)), memory
    )
