"""Run a plan in numpy on real bytes. It believes nothing: a wrong plan gives wrong numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Region
from pipeline.graph.tensor import Box, DType, IntArray
from pipeline.plan.reads import unit_times
from pipeline.plan.storage import Storage, Stream
from pipeline.plan.vocabulary import (
    Buffer,
    Clear,
    Compute,
    Finish,
    Move,
    Plan,
    Slice,
)
from pipeline.plan.walk import Choice, Env, Event, walk


@dataclass(frozen=True)
class Result:
    """The output tensor's values and, for each memory, the bytes up to the highest one touched."""

    output: IntArray
    high_water_bytes: dict[str, float]


class Interpreter:
    """The state of one run: a byte array for each memory."""

    def __init__(self, plan: Plan, graph: Graph, frame: IntArray) -> None:
        self.plan, self.graph = plan, graph
        self.operators = {op.name: op for op in graph.operators}
        self.storage = {
            memory.name: (Stream if memory.kind == "stream" else Storage)(memory.bytes)
            for memory in plan.memories
        }
        for name in plan.resident:
            buffer = plan.buffer[name]
            values = frame if buffer.tensor == graph.input else graph.constants[buffer.tensor]
            self.write(buffer, buffer.box, np.asarray(values, dtype=np.int64))
        for storage in self.storage.values():
            storage.top_nibbles = 0

    def dtype(self, buffer: Buffer) -> DType:
        if buffer.role == "accumulator":
            return DType(buffer.bits, signed=True)
        return self.graph.tensors[buffer.tensor].dtype

    def read(self, buffer: Buffer, box: Box) -> IntArray:
        return self.storage[buffer.memory].read(buffer.addresses(box), self.dtype(buffer))

    def write(self, buffer: Buffer, box: Box, values: IntArray) -> None:
        self.storage[buffer.memory].write(buffer.addresses(box), values, self.dtype(buffer))

    def step(self, event: Event) -> None:
        match event.step:
            case Compute():
                self.compute(event.step, event.env)
            case Clear(acc=acc):
                buffer = self.plan.buffer[acc.buffer]
                op = self.operators[event.step.op]
                box = acc.box(buffer.shape, event.env)
                opened = 0 if op.combine == "add" else self.graph.tensors[op.output].dtype.minimum
                shape = [stop - start for start, stop in box]
                self.write(buffer, box, np.full(shape, opened, dtype=np.int64))
            case Finish():
                self.finish(event.step, event.env)
            case Move(src=src, dst=dst):
                source, target = self.plan.buffer[src.buffer], self.plan.buffer[dst.buffer]
                values = self.read(source, src.box(source.shape, event.env))
                self.write(target, dst.box(target.shape, event.env), values)
            case _:
                pass

    def compute(self, step: Compute, env: Env) -> None:
        op, out = self.operators[step.op], self.plan.buffer[step.out.buffer]
        box = step.out.box(out.shape, env)
        self.spoil(step)
        for block in self.blocks(box, step, env):
            acc = op.accumulate(self.graph.tensors, block, self.regions(op, step.ins, block, env))
            if step.partial:
                held = self.read(out, block)
                result = held + acc[0] if op.combine == "add" else np.maximum(held, acc[0])
            else:
                extra = self.constants(op, step.ins, env)
                result = op.finish(self.graph.tensors, block, acc, extra)[0]
            self.write(out, block, result)
        self.spoil(step)

    def spoil(self, step: Compute) -> None:
        """A kernel may write to its scratch at any time: before it reads and after it writes."""
        for name in step.scratch:
            buffer = self.plan.buffer[name]
            self.storage[buffer.memory].spoil(buffer.cells(buffer.box))

    def finish(self, step: Finish, env: Env) -> None:
        op = self.operators[step.op]
        acc, out = self.plan.buffer[step.acc.buffer], self.plan.buffer[step.out.buffer]
        box = step.out.box(out.shape, env)
        extents = tuple(stop - start for start, stop in box)
        extra = self.constants(op, step.ins, env)
        for block in _in_order(box, unit_times(extents, step.unit, ())):
            held = self.read(acc, block)[None]
            self.write(out, block, op.finish(self.graph.tensors, block, held, extra)[0])

    def blocks(self, box: Box, step: Compute, env: Env) -> list[Box]:
        """The blocks to compute one after the other; all at once where nothing can collide."""
        if any(start == stop for start, stop in box):
            return []
        out = self.plan.buffer[step.out.buffer]
        written = out.cells(box)
        for source in step.ins:
            buffer = self.plan.buffer[source.buffer]
            if buffer.memory == out.memory:
                read = buffer.cells(source.box(buffer.shape, env))
                if read.size and np.isin(written, read).any():
                    break
        else:
            if np.unique(written).size == written.size:
                return [box]
        extents = tuple(stop - start for start, stop in box)
        return _in_order(box, unit_times(extents, step.unit, step.order))

    def regions(
        self, op: Operator, ins: tuple[Slice, ...], block: Box, env: Env
    ) -> dict[str, Region]:
        """The part of each operand's slice that the block reads; empty where there is none."""
        sources = {self.plan.buffer[s.buffer].tensor: s for s in ins}
        result = {}
        for term in op.terms(self.graph.tensors):
            for operand in term.operands:
                shape = self.graph.tensors[operand.tensor].shape
                if operand.tensor not in sources:
                    empty = tuple((0, 0) for _ in shape)
                    result[operand.tensor] = Region(
                        empty, np.zeros((1, *([0] * len(shape))), np.int64)
                    )
                    continue
                source = sources[operand.tensor]
                buffer = self.plan.buffer[source.buffer]
                limits = source.box(buffer.shape, env)
                wanted = operand.region(block)
                box = tuple(
                    (max(low, a), max(min(high, b), max(low, a)))
                    for (low, high), (a, b) in zip(wanted, limits, strict=True)
                )
                result[operand.tensor] = Region(box, self.read(buffer, box)[None])
        return result

    def constants(self, op: Operator, ins: tuple[Slice, ...], env: Env) -> Mapping[str, Region]:
        sources = {self.plan.buffer[s.buffer].tensor: s for s in ins}
        result = {}
        for operand in op.completion(self.graph.tensors):
            source = sources[operand.tensor]
            buffer = self.plan.buffer[source.buffer]
            box = source.box(buffer.shape, env)
            result[operand.tensor] = Region(box, self.read(buffer, box)[None])
        return result


def _in_order(box: Box, times: IntArray) -> list[Box]:
    """The blocks that share a time, as boxes, in the order of time."""
    result = []
    order = np.argsort(times, axis=None, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(times.reshape(-1)[order])) + 1)
    for group in groups:
        places = np.array(np.unravel_index(group, times.shape))
        low, high = places.min(axis=1), places.max(axis=1)
        result.append(
            tuple(
                (start + int(a), start + int(b) + 1)
                for (start, _), a, b in zip(box, low, high, strict=True)
            )
        )
    return result


def interpret(
    plan: Plan, graph: Graph, frame: IntArray, choose: Choice = lambda ready: ready[0]
) -> Result:
    """Execute ``plan`` on ``frame`` (the input tensor's shape), bit-exact with the firmware.

    ``choose`` picks the interleaving of the tracks (see ``walk``).
    """
    machine = Interpreter(plan, graph, frame)
    for event in walk(plan, choose):
        machine.step(event)
    output = plan.buffer[plan.output]
    values = machine.read(output, output.box)
    water = {name: storage.top_nibbles / 2 for name, storage in machine.storage.items()}
    return Result(values, water)
