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
from pipeline.plan.vocabulary import Buffer, Lin, Loop, Step, packed
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
        largest: the greatest magnitude of any sum (or maximum) of a window.
        sums: whether values are added up, or compared, as they come.
    """

    image: Tensor
    streams: bool
    pool: Pool2d | None
    start: Tensor
    largest: int = 0
    sums: bool = False

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
                return cls(image, streams, op, start, max(-least, greatest), not alone)
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
    def beside(self) -> tuple[str, int]:
        """The buffer that is there beside ``start`` while it is made, and its nibbles."""
        nibbles = prod(self.start.shape[1:]) * self.sum_bits // 4 if self.sums else 0
        return f"{self.start.name}.sums", nibbles

    def steps(self, draft: Draft) -> list[Step]:
        if not self.streams:
            draft.hold(self.start.name)
            return []
        self.opened(draft)
        if self.pool is None or not self.sums:
            kept = draft.hold(self.start.name)
            row = self.taken(draft, kept, self._row(Lin(0, (("row", 1),)), self.start))
            return [Loop("row", self.image.shape[0], (row,))]
        height, here = self.pool.kernel[0], Lin(0, (("row", 1),))
        sums = draft.sums(self.start.name, rows=1, bits=self.sum_bits)
        start = draft.hold(self.start.name)
        pooled = self._row(here, self.start)
        image = self._row(Lin(0, (("row", height), ("part", 1))), self.image)
        unit = (1, 1, self.start.shape[2])
        add = draft.add(self.pool, sums, pooled, {self.image.name: image})
        finish = draft.finish(self.pool, part(sums, pooled), part(start, pooled), unit)
        clear = draft.clear(self.pool, part(sums, pooled))
        return [Loop("row", self.start.shape[0], (clear, Loop("part", height, (add,)), finish))]

    def opened(self, draft: Draft) -> None:
        arriving(draft, self.image, self.image.name if self.pool else "")

    def taken(self, draft: Draft, kept: Buffer, box: Box) -> Step:
        """``box`` comes in, each of its values by itself."""
        if self.pool is not None:
            return draft.compute(self.pool, kept, box)
        return draft.move(draft.buffer(f"{self.image.name}.{STREAM}"), kept, box)

    def _row(self, low: Lin, tensor: Tensor) -> Box:
        return (Range(low, 1), *all_of(tensor.shape[1:]))


def arriving(draft: Draft, image: Tensor, name: str = "") -> Buffer:
    """The stream that ``image`` comes in by."""
    shape, bits = image.shape, image.dtype.bits
    memory = Memory(STREAM, ceil(image.bytes), STREAM)
    called = name or f"{image.name}.{STREAM}"
    return draft.arrives(
        Buffer(called, image.name, STREAM, shape, bits, packed(shape, bits)), memory
    )
