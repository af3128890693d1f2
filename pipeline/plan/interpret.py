"""Run a plan in numpy on real bytes. It believes nothing: a wrong plan gives wrong numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from pipeline.graph.access import clipped, size_of
from pipeline.graph.ends import apart, joined
from pipeline.graph.graph import Graph
from pipeline.graph.operator import BoxValues, Operator, Regions
from pipeline.graph.requant import Mean
from pipeline.graph.tensor import Box, DType, IntArray, Tensor
from pipeline.hardware import Memory
from pipeline.plan import matches
from pipeline.plan.reads import array, read_indices, read_times, unit_times
from pipeline.plan.storage import Storage, Stream
from pipeline.plan.unrolled import Choice, Env, Event, walk
from pipeline.plan.vocabulary import (
    Buffer,
    Clear,
    Compute,
    Finish,
    Move,
    Plan,
    PlanError,
    Slice,
    value,
)

AT_ONCE = 1 << 23


@dataclass(frozen=True)
class Result:
    """The output's values (of several outputs one after the other, of several frames stacked, if
    the plan is for several) and, for each memory, the bytes up to the highest one touched.

    Attributes:
        left: what the next call finds of states, by the tensor that it reads.
    """

    output: IntArray
    high_water_bytes: dict[str, float]
    left: dict[str, IntArray]


class Interpreter:
    """The state of one run: a byte array for each memory.

    Args:
        found: of states, as the call before ``left`` them; None: their initial values.
    """

    def __init__(
        self, plan: Plan, graph: Graph, frame: IntArray, found: Mapping[str, IntArray] | None = None
    ) -> None:
        matches.check(plan, graph)
        self.plan, self.graph = plan, graph
        self.operators = {op.name: op for op in graph.operators}
        self.storage = {
            memory.name: (Stream if memory.kind == "stream" else Storage)(_size(plan, memory))
            for memory in plan.memories
        }
        inputs = [graph.tensors[name] for name in graph.inputs]
        shape = inputs[0].shape if len(inputs) == 1 else (sum(each.size for each in inputs),)
        given = apart(np.broadcast_to(frame, (plan.frames, *shape)), inputs)
        states = graph.initial if found is None else found
        given |= {name: values[None] for name, values in states.items()}
        for name in plan.resident:
            buffer = plan.buffer[name]
            if buffer.tensor in given:
                frames = given[buffer.tensor]
            else:
                frames = graph.constants[buffer.tensor][None]
            for number, values in enumerate(frames):
                self.write(buffer.at(number), buffer.box, np.asarray(values, dtype=np.int64))
        for storage in self.storage.values():
            storage.top_nibbles = 0

    def place(self, piece: Slice, env: Env) -> Buffer:
        return self.plan.buffer[piece.buffer].at(value(piece.copy, env))

    def dtype(self, buffer: Buffer) -> DType:
        if buffer.role == "accumulator":
            return DType(buffer.bits, signed=True)
        return self.graph.tensors[buffer.tensor].dtype

    def read(self, buffer: Buffer, box: Box) -> IntArray:
        storage, dtype = self.storage[buffer.memory], self.dtype(buffer)
        start, shape = buffer.run(box), [stop - first for first, stop in box]
        if not all(shape):
            return np.zeros(shape, dtype=np.int64)
        if start is None or start % 2 or dtype.bits < 8:
            return storage.read(buffer.addresses(box), dtype)
        return storage.read_run(start, prod(shape), dtype).reshape(shape)

    def write(self, buffer: Buffer, box: Box, values: IntArray) -> None:
        if not values.size:
            return
        storage, dtype, start = self.storage[buffer.memory], self.dtype(buffer), buffer.run(box)
        if start is None or start % 2 or dtype.bits < 8:
            storage.write(buffer.addresses(box), values, dtype)
        else:
            storage.write_run(start, values, dtype)

    @property
    def left(self) -> dict[str, IntArray]:
        """What the next call finds of states, once all steps are done."""
        pairs = zip(self.graph.states, self.plan.states, strict=True)
        places = ((each.read, self.plan.buffer[name]) for each, name in pairs)
        return {read: self.read(place, place.box) for read, place in places}

    def step(self, event: Event) -> None:
        """
        Raises:
            PlanError: what only an unproved plan can ask for, such as values no table has.
        """
        try:
            with np.errstate(divide="raise", invalid="raise"):
                self.carry_out(event)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise PlanError(f"{event} cannot be carried out: {error}") from error

    def carry_out(self, event: Event) -> None:
        match event.step:
            case Compute():
                self.compute(event.step, event.env)
            case Clear(acc=acc):
                buffer = self.place(acc, event.env)
                op = self.operators[event.step.op]
                box = acc.box(buffer.shape, event.env)
                opened = op.reduction.start(self.graph.tensors[op.output].dtype)
                shape = [stop - start for start, stop in box]
                self.write(buffer, box, np.full(shape, opened, dtype=np.int64))
            case Finish():
                self.finish(event.step, event.env)
            case Move(src=src, dst=dst):
                source, target = self.place(src, event.env), self.place(dst, event.env)
                values = self.read(source, src.box(source.shape, event.env))
                self.write(target, dst.box(target.shape, event.env), values)
            case _:
                pass

    def compute(self, step: Compute, env: Env) -> None:
        op, out = self.operators[step.op], self.place(step.out, env)
        box = step.out.box(out.shape, env)
        if not size_of(box):
            return
        self.spoil(step)
        waiting = deque[tuple[Box, IntArray]]()
        for block in self.blocks(box, step, env):
            acc = op.accumulate(self.graph.tensors, block, self.regions(op, step.ins, block, env))
            if step.partial:
                result = self.added(op, out, self.read(out, block), acc[0])
            else:
                extra = self.constants(op, step.ins, env)
                result = op.finish(self.graph.tensors, block, acc, extra)[0]
            waiting.append((block, result))
            if len(waiting) > step.delay:
                self.write(out, *waiting.popleft())
        for block, result in waiting:
            self.write(out, block, result)
        self.spoil(step)

    def added(self, op: Operator, out: Buffer, held: IntArray, more: IntArray) -> IntArray:
        """Return accumulators that hold ``held`` after adding ``more`` (see ``Buffer.step``)."""
        if op.combine != "add" or out.step == 1:
            return np.asarray(op.reduction.join(held, more))
        rounded = Mean().apply(more, np.full_like(more, out.step))
        return self.dtype(out).clip(held + rounded)

    def finished(self, acc: Buffer, held: IntArray) -> IntArray:
        """Return the sums that accumulators stand for."""
        return held * acc.step

    def spoil(self, step: Compute) -> None:
        """A kernel may write to its scratch at any time: before it reads and after it writes."""
        for name in step.scratch:
            buffer = self.plan.buffer[name]
            self.storage[buffer.memory].spoil(buffer.cells(buffer.box))

    def finish(self, step: Finish, env: Env) -> None:
        op = self.operators[step.op]
        acc, out = self.place(step.acc, env), self.place(step.out, env)
        box = step.out.box(out.shape, env)
        if not size_of(box):
            return
        extents = tuple(stop - start for start, stop in box)
        extra = self.constants(op, step.ins, env)
        times = unit_times(extents, step.unit, ())
        for block in [box] if _shrinks(acc, out, box, times) else _in_order(box, times):
            held = self.finished(acc, self.read(acc, block))[None]
            self.write(out, block, op.finish(self.graph.tensors, block, held, extra)[0])

    def blocks(self, box: Box, step: Compute, env: Env) -> list[Box]:
        """The blocks to compute one after the other; all at once where their order is nothing."""
        op, out = self.operators[step.op], self.place(step.out, env)
        extents = tuple(stop - start for start, stop in box)
        beside = [self.place(source, env) for source in step.ins]
        if out.run(box) is not None and not any(out.meets(buffer) for buffer in beside):
            return _portions(op, self.graph.tensors, box)
        times = unit_times(extents, step.unit, step.order)
        return [box] if self.orderless(op, box, times, step, env) else _in_order(box, times)

    def orderless(self, op: Operator, box: Box, times: IntArray, step: Compute, env: Env) -> bool:
        """Check that no cell is written twice, and none is read by a later unit than the one that
        writes it.

        Then reading everything before writing anything is the same as going unit by unit.
        """
        out = self.place(step.out, env)
        written = out.cells(box)
        low, high = int(written.min()), int(written.max()) + 1
        when = np.full(high - low, np.iinfo(np.int64).max, dtype=np.int64)
        when[written - low] = times.reshape(-1, 1) + step.delay
        if np.count_nonzero(when != np.iinfo(np.int64).max) < written.size:
            return False
        sources = self.sources(step.ins)
        operands = [o for term in op.terms(self.graph.tensors) for o in term.operands]
        for operand in (*operands, *op.completion(self.graph.tensors)):
            source = sources.get(operand.tensor)
            buffer = self.place(source, env) if source else None
            if source is None or buffer is None or buffer.memory != out.memory:
                continue
            held = source.box(buffer.shape, env)
            grid = read_indices(operand, box, held)
            last = read_times(operand, box, times, grid, last=True)
            inside = np.ix_(
                *(array(index) - start for index, (start, _) in zip(grid, held, strict=True))
            )
            first = np.broadcast_to(buffer.addresses(held), [b - a for a, b in held])[inside]
            cells = first[..., None] + np.arange(buffer.nibbles)
            hit = (cells >= low) & (cells < high)
            if (when[cells[hit] - low] < np.broadcast_to(last[..., None], cells.shape)[hit]).any():
                return False
        return True

    def regions(
        self, op: Operator, ins: tuple[Slice, ...], block: Box, env: Env
    ) -> dict[str, BoxValues]:
        """The part of each operand's slice that the block reads; empty where there is none."""
        sources, result = self.sources(ins), {}
        for operand in (o for term in op.terms(self.graph.tensors) for o in term.operands):
            if operand.tensor not in sources:
                rank = len(self.graph.tensors[operand.tensor].shape)
                none = np.zeros((1, *[0] * rank), np.int64)
                result[operand.tensor] = BoxValues(((0, 0),) * rank, none)
                continue
            source = sources[operand.tensor]
            buffer = self.place(source, env)
            limits = source.box(buffer.shape, env)
            box = tuple(
                (max(low, a), max(min(high, b), max(low, a)))
                for (low, high), (a, b) in zip(operand.region(block), limits, strict=True)
            )
            result[operand.tensor] = BoxValues(box, self.read(buffer, box)[None])
        return result

    def sources(self, ins: tuple[Slice, ...]) -> dict[str, Slice]:
        """Return them by the tensors that they are parts of."""
        return {self.plan.buffer[piece.buffer].tensor: piece for piece in ins}

    def constants(self, op: Operator, ins: tuple[Slice, ...], env: Env) -> Regions:
        sources, result = self.sources(ins), {}
        for operand in op.completion(self.graph.tensors):
            source = sources[operand.tensor]
            buffer = self.place(source, env)
            box = source.box(buffer.shape, env)
            result[operand.tensor] = BoxValues(box, self.read(buffer, box)[None])
        return result


def _size(plan: Plan, memory: Memory) -> int:
    """Bytes that any buffer reaches: a memory may be much larger."""
    tops = [buffer.extent[1] for buffer in plan.buffers if buffer.memory == memory.name]
    return min(memory.bytes, -(-max(tops, default=0) // 2))


def _shrinks(acc: Buffer, out: Buffer, box: Box, times: IntArray) -> bool:
    """Check that no element is written where a later unit reads a sum: all can be finished at
    once."""
    if not acc.meets(out):
        return True
    written, read = out.cells(box), acc.cells(box)
    low, high = int(written.min(initial=0)), int(written.max(initial=-1)) + 1
    when = np.full(high - low, np.iinfo(np.int64).max, dtype=np.int64)
    when[written - low] = times.reshape(-1, 1)
    hit = (read >= low) & (read < high)
    return bool(
        (when[read[hit] - low] >= np.repeat(times.reshape(-1, 1), acc.nibbles, 1)[hit]).all()
    )


def _portions(op: Operator, tensors: Mapping[str, Tensor], box: Box) -> list[Box]:
    """``box``, along its last axis in parts that read no more than ``AT_ONCE`` elements of any
    operand where that is possible: the weights of a large layer are wide when unpacked."""
    operands = [o for term in op.terms(tensors) for o in term.operands]
    most = max(size_of(clipped(o.region(box), tensors[o.tensor].shape)) for o in operands)
    start, stop = box[-1]
    step = max(1, (stop - start) // -(-max(most, 1) // AT_ONCE))  # padding alone reads nothing
    return [(*box[:-1], (n, min(n + step, stop))) for n in range(start, stop, step)]


def _in_order(box: Box, times: IntArray) -> list[Box]:
    """Return the blocks that share a time, as boxes, in the order of time."""
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
    plan: Plan,
    graph: Graph,
    frame: IntArray,
    choose: Choice = None,
    found: Mapping[str, IntArray] | None = None,
) -> Result:
    """Execute ``plan`` on ``frame`` (the input tensor's shape; of several inputs their elements one
    after the other), bit-exact with the firmware.

    A plan for n frames takes (n, *shape), or one frame n times over, and gives n outputs.
    ``choose`` picks the interleaving of the tracks (see ``walk``); ``found``: see ``Interpreter``.
    """
    machine = Interpreter(plan, graph, frame, found)
    for event in walk(plan, choose):
        machine.step(event)
    outputs, frames = [plan.buffer[name] for name in plan.outputs], range(plan.frames)
    each = [np.stack([machine.read(out.at(n), out.box) for n in frames]) for out in outputs]
    values = joined(each) if plan.frames > 1 else joined(each)[0]
    water = {name: storage.top_nibbles / 2 for name, storage in machine.storage.items()}
    return Result(values, water, machine.left)


def sequence(
    plan: Plan, graph: Graph, frames: Iterable[IntArray], choose: Choice = None
) -> Iterator[IntArray]:
    """Yield the outputs of calls that follow each other, from the initial states on."""
    found = None
    for frame in frames:
        done = interpret(plan, graph, frame, choose, found)
        found = done.left
        yield done.output
