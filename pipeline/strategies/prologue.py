"""From the arriving input to the first tensor that is held whole in SRAM.

An image that streams in is pooled on the way and never exists: one row of sums is enough. Any
other first operator needs the image in SRAM, and then it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Final

from pipeline.graph.graph import Graph
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware, Memory
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Clear,
    Compute,
    Finish,
    Lin,
    Loop,
    Move,
    Slice,
    Step,
    packed,
)

STREAM: Final = "stream"


@dataclass(frozen=True)
class Prologue:
    """
    Attributes:
        image: the frame's input.
        pool: the pooling done while the image arrives, if there is one.
        start: the first tensor held whole in SRAM.
        streams: the image arrives element by element.
        memory: where sums are held.
        largest: the greatest magnitude of any sum (or maximum) of a window.
    """

    image: Tensor
    pool: Pool2d | None
    start: Tensor
    streams: bool
    memory: str
    largest: int = 0

    @classmethod
    def of(cls, graph: Graph, hardware: Hardware) -> Prologue:
        image, memory = graph.tensors[graph.input], hardware.activation_memory
        readers = [op for op in graph.operators if graph.input in op.inputs]
        op = readers[0] if len(readers) == 1 else None
        if hardware.streams_input and isinstance(op, Pool2d) and op.stride == op.kernel:
            # a stream is read without gaps, so windows must cover the image exactly
            rows, columns = image.shape[0] % op.kernel[0], image.shape[1] % op.kernel[1]
            if rows == columns == 0 and not any(op.padding):
                least, greatest = op.partial_sums(graph.tensors, graph.constants)
                start = graph.tensors[op.output]
                return cls(image, op, start, True, memory, max(-least, greatest))
        return cls(image, None, image, hardware.streams_input, memory)

    @property
    def sum_bits(self) -> int:
        """Width of an accumulator that holds any sum of a window, with its sign."""
        if self.pool is None:
            return 0
        return next(bits for bits in (8, 16, 32) if self.largest < 1 << (bits - 1))

    @property
    def sum_nibbles(self) -> int:
        """One row of sums."""
        return prod(self.start.shape[1:]) * self.sum_bits // 4 if self.pool else 0

    @property
    def memories(self) -> tuple[Memory, ...]:
        return (Memory(STREAM, ceil(self.image.bytes), STREAM),) if self.streams else ()

    def buffers(self, base: int) -> tuple[Buffer, ...]:
        """The arriving image, and the row of sums at nibble ``base``."""
        if not self.streams:
            return ()
        name = self.image.name if self.pool else f"{self.image.name}.{STREAM}"
        shape, bits = self.image.shape, self.image.dtype.bits
        arriving = Buffer(name, self.image.name, STREAM, shape, bits, packed(shape, bits))
        if self.pool is None:
            return (arriving,)
        one_row = packed(self.start.shape[1:], self.sum_bits, base)
        ring = Affine(base, (0, *one_row.strides), (1, *([0] * len(one_row.strides))))
        sums = Buffer(
            f"{self.start.name}.sums",
            self.start.name,
            self.memory,
            self.start.shape,
            self.sum_bits,
            ring,
            "accumulator",
        )
        return arriving, sums

    def steps(self, buffers: tuple[Buffer, ...], start: Buffer) -> tuple[Step, ...]:
        if not self.streams:
            return ()
        row = (1, *self.image.shape[1:])
        here, rest = Lin(0, (("row", 1),)), (0,) * (len(self.image.shape) - 1)
        if self.pool is None:
            arrived = Slice(buffers[0].name, (here, *rest), row)
            kept = Slice(start.name, (here, *rest), row)
            return (Loop("row", self.image.shape[0], (Move(arrived, kept),)),)
        height = self.pool.kernel[0]
        image = Slice(buffers[0].name, (Lin(0, (("row", height), ("part", 1))), *rest), row)
        pooled = (1, *self.start.shape[1:])
        sums = Slice(buffers[1].name, (here, *rest), pooled)
        unit = (1, 1, self.start.shape[2])
        add = Compute(self.pool.name, sums, (image,), unit, partial=True)
        finish = Finish(self.pool.name, sums, Slice(start.name, (here, *rest), pooled), (), unit)
        body = (Clear(self.pool.name, sums), Loop("part", height, (add,)), finish)
        return (Loop("row", self.start.shape[0], body),)
