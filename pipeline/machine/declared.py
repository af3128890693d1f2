"""Expand a plan into its steps in order, and the bytes of the arena that each reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.graph.families import Sliding
from pipeline.graph.graph import Graph
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.operators.placing import Concat, Rearrange, Reshape
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.unrolled import Env, unroll
from pipeline.plan.vocabulary import (
    Buffer,
    Clear,
    Compute,
    Finish,
    Move,
    Plan,
    Slice,
    Step,
    value,
)

IN, OUT, SCRATCH = 1, 2, 4
SUMS = IN | OUT | SCRATCH
"""Accumulators: read, added to and written back, in any order."""
SOME = IN | 32
"""An input of which the step need not read every byte."""
ORDERED = IN | SCRATCH
"""Inputs and outputs that nn_invoke puts in order, before and after all steps."""

FAR = 1 << 40
"""More than any element's address, or value."""

Range = tuple[int, int, int]
"""First byte, bytes, role."""


@dataclass(frozen=True)
class Declared:
    """One step: its operator, "" for a move, and the bytes that it touches."""

    op: str
    ranges: tuple[Range, ...]


def skipping(graph: Graph) -> set[str]:
    """List operators whose windows leave out elements between them."""
    found = set()
    for op in graph.operators:
        if isinstance(op, Sliding):
            kernel = op.window(graph.tensors)
            if any(by > size for by, size in zip(op.stride, kernel, strict=True)):
                found.add(op.name)
    return found


class Reader:
    """Reads the bytes of a plan's slices: those in the memory of the arena.

    Args:
        graph: which operators need not read every byte of their inputs, or leave some in place.
    """

    def __init__(self, plan: Plan, memory: str, graph: Graph) -> None:
        self.plan, self.memory, self.graph = plan, memory, graph
        self.skips, placed = skipping(graph), (Concat, Rearrange, Reshape)
        self.placing = {op.name: op for op in graph.operators if isinstance(op, placed)}
        self.spans = lru_cache(1 << 14)(self._spans)

    def steps(self) -> Iterator[Declared]:
        """Steps that write anything, in order; with those before and after that put inputs and
        outputs in order where they do not lie so."""
        yield from self._ordering(self.plan.inputs)
        yield from self._declared()
        yield from self._ordering(self.plan.outputs)

    def _ordering(self, names: Sequence[str]) -> Iterator[Declared]:
        buffers = [self.plan.buffer[name] for name in names]
        if any(buffer.run(buffer.box) is None for buffer in buffers):
            yield Declared("", ((0, self.plan.memory[self.memory].bytes, ORDERED),))

    def _declared(self) -> Iterator[Declared]:
        for step, env in unroll(self.plan.tracks[0].steps, {}):
            roles = list(self._roles(step, env))
            ranges = tuple(each for piece, role in roles for each in self._ranges(piece, role, env))
            if isinstance(step, Compute) and (op := self.placing.get(step.op)):
                ranges = tuple(without(ranges, self._in_place(step, op, env)))
            if any(role & OUT for _, _, role in ranges):
                yield Declared(getattr(step, "op", ""), ranges)

    def whole(self, name: str) -> Sequence[tuple[int, int]]:
        """Name all bytes of the buffer ``name``, in any copy."""
        buffer = self.plan.buffer[name]
        return [span for n in range(buffer.copies) for span in self.spans(name, buffer.box, n)]

    def _roles(self, step: Step, env: Env) -> Iterator[tuple[Slice | str, int]]:
        match step:
            case Compute(op=op, out=out, ins=ins, scratch=scratch, partial=partial):
                yield out, SUMS if partial else OUT
                reads = SOME if op in self.skips else IN
                yield from ((piece, reads) for piece in ins)
                yield from ((name, SCRATCH) for name in scratch)
            case Finish(acc=acc, out=out, ins=ins):
                yield from ((piece, IN) for piece in (acc, *ins))
                yield out, OUT
            case Clear(acc=acc):
                yield acc, OUT
            case Move(src=src, dst=dst):
                yield from ((src, IN), (dst, OUT))

    def _in_place(self, step: Compute, op: Operator, env: Env) -> IntArray:
        """Find the bytes of elements that the output has where an input has them: the operator is
        given its inputs' addresses as their values."""
        regions = dict[str, BoxValues]()
        for piece in step.ins:
            buffer, held = self._placed(piece, env)
            regions[buffer.tensor] = BoxValues(held, buffer.addresses(held)[None] + FAR)
        (out, box), tensors = self._placed(step.out, env), self.graph.tensors
        came = op.finish(tensors, box, op.accumulate(tensors, box, regions), regions)[0]
        made = out.addresses(box)
        same = made[made + FAR == came]
        return np.concatenate([(same + n) // 2 for n in range(0, out.nibbles, 2)])

    def _placed(self, piece: Slice, env: Env) -> tuple[Buffer, Box]:
        buffer = self.plan.buffer[piece.buffer]
        return buffer.at(value(piece.copy, env) % buffer.copies), piece.box(buffer.shape, env)

    def _ranges(self, piece: Slice | str, role: int, env: Env) -> Iterator[Range]:
        if isinstance(piece, str):
            spans = self.whole(piece)
        else:
            buffer = self.plan.buffer[piece.buffer]
            box = piece.box(buffer.shape, env)
            spans = self.spans(piece.buffer, box, value(piece.copy, env) % buffer.copies)
        yield from ((start, count, role) for start, count in spans)

    def _spans(self, name: str, box: Box, copy: int) -> Sequence[tuple[int, int]]:
        """Return first bytes and counts of what lies side by side; ascending."""
        buffer = self.plan.buffer[name]
        held = zip(box, buffer.held, strict=True)
        box = tuple((max(low, first), min(high, end)) for (low, high), (first, end) in held)
        if buffer.memory != self.memory or any(low >= high for low, high in box):
            return ()
        return runs(_bytes(buffer.at(copy), box))


def _bytes(buffer: Buffer, box: Box) -> IntArray:
    nibbles = buffer.addresses(box).ravel()
    return np.concatenate([(nibbles + n) // 2 for n in range(0, buffer.nibbles, 2)])


def without(ranges: Sequence[Range], bytes_: IntArray) -> Iterator[Range]:
    """Cut ``bytes_`` out of ``ranges``."""
    for start, count, role in ranges:
        left = np.setdiff1d(np.arange(start, start + count), bytes_)
        yield from ((begin, number, role) for begin, number in (runs(left) if left.size else ()))


def runs(places: IntArray) -> Sequence[tuple[int, int]]:
    """Return starts and lengths of the stretches of ``places``, which may repeat, in any order."""
    first = int(places.min())
    seen = np.zeros(int(places.max()) - first + 3, np.int8)
    seen[places - first + 1] = 1
    starts, ends = (np.flatnonzero(np.diff(seen) == edge) for edge in (1, -1))
    return list(zip((starts + first).tolist(), (ends - starts).tolist(), strict=True))
