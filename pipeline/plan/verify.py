"""Prove a plan: walk it once with a token in every memory cell. Knows no strategy and no operator.

Accepted means: every read finds exactly the complete element it needs; accumulators get every atom
once before they are finished; a unit's reads precede its writes; nothing leaves its memory; a
stream is read once and in order; tracks neither race nor deadlock; the output is there at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from pipeline.graph.access import Operand, Term
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.contributions import Masks, contributed
from pipeline.plan.races import Races
from pipeline.plan.reads import read_indices, read_times, unit_times
from pipeline.plan.tokens import COMPLETE, Tokens, grid_cells, indices, numbers
from pipeline.plan.vocabulary import Buffer, Clear, Compute, Finish, Move, Plan, Slice, value
from pipeline.plan.walk import Event, PlanError, walk


@dataclass(frozen=True)
class Report:
    """What a verified plan does.

    Attributes:
        steps: steps walked, loops unrolled.
        computed: output elements computed, by operator; more than the tensor has is recomputation.
        recomputed: output elements computed beyond once each, by operator.
        macs_executed: multiply–accumulates, padding included, recomputation too.
    """

    steps: int
    computed: dict[str, int]
    recomputed: dict[str, int]
    macs_executed: int


@dataclass(frozen=True)
class _Access:
    """Elements of one buffer that a step touches, with the unit that does so last (and first)."""

    buffer: Buffer
    numbers: IntArray
    cells: IntArray
    last: IntArray
    first: IntArray


@dataclass
class _Verifier:
    plan: Plan
    graph: Graph
    tokens: Tokens = field(init=False)
    masks: Masks = field(default_factory=Masks)
    races: Races = field(init=False)
    stream: Counter[str] = field(default_factory=Counter)
    atoms: Counter[str] = field(default_factory=Counter)
    computed: Counter[str] = field(default_factory=Counter)
    steps: int = 0

    def __post_init__(self) -> None:
        self.tokens = Tokens(self.plan)
        self.races = Races(self.plan, {n: len(cells) for n, cells in self.tokens.owner.items()})
        self.operators = {op.name: op for op in self.graph.operators}
        for name in self.plan.resident:
            buffer = self.buffer(name)
            if buffer.tensor not in {self.graph.input, *self.graph.constants}:
                raise PlanError(f"{name} is resident, but {buffer.tensor} has to be computed")
            grid = indices(buffer.box)
            cells = grid_cells(buffer, grid)
            if (self.tokens.owner[buffer.memory][cells] != 0).any():
                raise PlanError(f"resident buffer {name} overlaps another one")
            self.tokens.write(buffer, numbers(buffer.shape, 0, grid), cells, COMPLETE)

    def buffer(self, name: str) -> Buffer:
        buffer = self.plan.buffer.get(name)
        if buffer is None:
            raise PlanError(f"there is no buffer {name}")
        if buffer.role == "scratch":
            return buffer
        tensor = self.graph.tensors.get(buffer.tensor)
        if tensor is None or tensor.shape != buffer.shape:
            raise PlanError(f"buffer {name} does not have the shape of a tensor {buffer.tensor!r}")
        if buffer.role != "accumulator" and buffer.bits != tensor.dtype.bits:
            raise PlanError(f"buffer {name} holds {buffer.bits}-bit elements of {tensor.dtype}")
        return buffer

    def operator(self, name: str) -> Operator:
        if name not in self.operators:
            raise PlanError(f"there is no operator {name}")
        return self.operators[name]

    def run(self) -> Report:
        handlers = {Compute: self.compute, Clear: self.clear, Finish: self.finish, Move: self.move}
        for event in walk(self.plan):
            self.steps += 1
            self.races.step(event)
            handler = handlers.get(type(event.step))
            if handler is not None:
                handler(event, event.step)  # type: ignore[operator]
        output = self.buffer(self.plan.output)
        if output.tensor != self.graph.output or output.role != "activation":
            raise PlanError(f"the plan's output is {output.tensor}, not {self.graph.output}")
        access = self.elements(output, output.box, self.plan.frames - 1)
        self.tokens.check(output, access.numbers, access.cells, lambda: "the end of the plan")
        once = {op.name: self.graph.tensors[op.output].size for op in self.graph.operators}
        again = {n: count - once[n] * self.plan.frames for n, count in self.computed.items()}
        return Report(
            self.steps,
            dict(self.computed),
            {name: count for name, count in again.items() if count > 0},
            round(sum(self.atoms.values())),
        )

    # --- steps

    def compute(self, event: Event, step: Compute) -> None:
        op, out = self.operator(step.op), self.buffer(step.out.buffer)
        box = step.out.box(out.shape, event.env)
        self.expect(event, out, op.output, "accumulator" if step.partial else "activation")
        if any(start == stop for start, stop in box):
            return
        sources = {self.buffer(s.buffer).tensor: s for s in step.ins}
        if len(sources) != len(step.ins):
            raise PlanError(f"{event} reads one tensor through two slices")
        frame = value(step.out.frame, event.env)
        times = self.times(event, box, step.unit, step.order)
        terms = op.terms(self.graph.tensors)
        available = {tensor: self.available(event, s, frame) for tensor, s in sources.items()}
        sums = contributed(self.masks, terms, box, available)
        full = self.complete(terms, box)
        reads = [
            self.operand(event, operand, box, times, sources, available)
            for operand in (o for term in terms for o in term.operands)
            if operand.tensor in sources
        ]
        written = self.elements(out, box, frame, times)
        if step.partial:
            reads.append(written)
            sums = self.add_up(event, written, sums)
        else:
            reads += self.completion(event, op, box, times, sources, available)
            if (sums != full).any():
                raise PlanError(f"{event} is incomplete: its slices do not hold all it needs")
        for name in step.scratch:
            self.scratch(event, self.buffer(name), [*reads, written])
        self.commit(event, reads, written, sums.reshape(-1) if step.partial else COMPLETE)
        if not step.partial:
            self.computed[op.name] += written.numbers.size
            self.atoms[op.name] += written.numbers.size * self.macs_each(op)

    def clear(self, event: Event, step: Clear) -> None:
        op, acc = self.operator(step.op), self.buffer(step.acc.buffer)
        self.expect(event, acc, op.output, "accumulator")
        box = step.acc.box(acc.shape, event.env)
        if any(start == stop for start, stop in box):
            return
        self.commit(event, [], self.elements(acc, box, value(step.acc.frame, event.env)), 0)

    def finish(self, event: Event, step: Finish) -> None:
        op = self.operator(step.op)
        acc, out = self.buffer(step.acc.buffer), self.buffer(step.out.buffer)
        self.expect(event, acc, op.output, "accumulator")
        self.expect(event, out, op.output, "activation")
        box = step.out.box(out.shape, event.env)
        frame = value(step.out.frame, event.env)
        if step.acc.box(acc.shape, event.env) != box or value(step.acc.frame, event.env) != frame:
            raise PlanError(f"{event} finishes other elements than it writes")
        if any(start == stop for start, stop in box):
            return
        times = self.times(event, box, step.unit, ())
        held = self.elements(acc, box, frame, times)
        sources = {self.buffer(s.buffer).tensor: s for s in step.ins}
        available = {tensor: self.available(event, s, frame) for tensor, s in sources.items()}
        reads = self.completion(event, op, box, times, sources, available)
        found = self.tokens.check(acc, held.numbers, held.cells, lambda: str(event))
        wanted = self.complete(op.terms(self.graph.tensors), box).reshape(-1)
        if (found != wanted).any():
            number = int(held.numbers[np.argmax(found != wanted)])
            raise PlanError(f"{event} finds element {number} of {op.output} incomplete")
        written = self.elements(out, box, frame, times)
        self.commit(event, [*reads, held], written, COMPLETE)
        self.computed[op.name] += written.numbers.size
        self.atoms[op.name] += written.numbers.size * self.macs_each(op)

    def move(self, event: Event, step: Move) -> None:
        source, target = self.buffer(step.src.buffer), self.buffer(step.dst.buffer)
        if source.tensor != target.tensor or source.bits != target.bits:
            raise PlanError(f"{event} turns {source.name} into {target.name}")
        if "accumulator" in (source.role, target.role) and source.role != target.role:
            raise PlanError(f"{event} mixes accumulators and elements")
        box, to = step.src.box(source.shape, event.env), step.dst.box(target.shape, event.env)
        frame = value(step.src.frame, event.env)
        if box != to or value(step.dst.frame, event.env) != frame:
            raise PlanError(f"{event} reads other elements of {source.tensor} than it writes")
        if any(start == stop for start, stop in box):
            return
        read = self.elements(source, box, frame)
        sums = self.tokens.check(source, read.numbers, read.cells, lambda: str(event))
        self.commit(event, [read], self.elements(target, box, frame), sums)

    # --- pieces

    def expect(self, event: Event, buffer: Buffer, tensor: str, role: str) -> None:
        if buffer.tensor != tensor or buffer.role != role:
            raise PlanError(f"{event} needs an {role} buffer of {tensor}, not {buffer.name}")

    def times(
        self, event: Event, box: Box, unit: tuple[int, ...], order: tuple[tuple[int, ...], ...]
    ) -> IntArray:
        try:
            return unit_times(tuple(stop - start for start, stop in box), unit, order)
        except (ValueError, IndexError) as error:
            raise PlanError(f"{event}: {error}") from None

    def available(self, event: Event, source: Slice, frame: int) -> Box:
        buffer = self.buffer(source.buffer)
        if buffer.tensor in self.graph.constants:
            frame = 0
        if value(source.frame, event.env) != frame:
            raise PlanError(f"{event} reads frame {source.frame} for frame {frame}")
        return source.box(buffer.shape, event.env)

    def operand(
        self,
        event: Event,
        operand: Operand,
        box: Box,
        times: IntArray,
        sources: dict[str, Slice],
        available: dict[str, Box],
    ) -> _Access:
        """The elements of one operand that the step reads, checked."""
        source = sources[operand.tensor]
        buffer = self.buffer(source.buffer)
        if buffer.role == "accumulator":
            raise PlanError(f"{event} reads the accumulators {buffer.name}: finish them first")
        grid = read_indices(operand, box, available[operand.tensor])
        frame = value(source.frame, event.env)
        number, cells = numbers(buffer.shape, frame, grid).reshape(-1), grid_cells(buffer, grid)
        self.tokens.check(buffer, number, cells, lambda: str(event))
        last = read_times(operand, box, times, grid, last=True).reshape(-1)
        first = read_times(operand, box, times, grid, last=False).reshape(-1)
        return _Access(buffer, number, cells, last, first)

    def completion(
        self,
        event: Event,
        op: Operator,
        box: Box,
        times: IntArray,
        sources: dict[str, Slice],
        available: dict[str, Box],
    ) -> list[_Access]:
        """What the end of a sum reads, such as the bias: all of it must be in the slices."""
        result = []
        for operand in op.completion(self.graph.tensors):
            tensor = self.graph.tensors[operand.tensor]
            needed = read_indices(operand, box, tensor.box)
            held = read_indices(
                operand, box, available.get(operand.tensor, ((0, 0),) * len(needed))
            )
            if any(len(a) != len(b) for a, b in zip(needed, held, strict=True)):
                raise PlanError(f"{event} is incomplete: it lacks part of {operand.tensor}")
            result.append(self.operand(event, operand, box, times, sources, available))
        return result

    def elements(
        self, buffer: Buffer, box: Box, frame: int, times: IntArray | None = None
    ) -> _Access:
        grid = indices(box)
        number = numbers(buffer.shape, frame, grid).reshape(-1)
        when = np.zeros(number.size, dtype=np.int64) if times is None else times.reshape(-1)
        return _Access(buffer, number, grid_cells(buffer, grid), when, when)

    def complete(self, terms: tuple[Term, ...], box: Box) -> IntArray:
        tensors = {o.tensor for term in terms for o in term.operands}
        return contributed(
            self.masks, terms, box, {name: self.graph.tensors[name].box for name in tensors}
        )

    def add_up(self, event: Event, acc: _Access, added: IntArray) -> IntArray:
        """Mask ids after adding; the accumulators must be open and hold none of it yet."""
        held = self.tokens.check(acc.buffer, acc.numbers, acc.cells, lambda: str(event))
        pairs, inverse = np.unique(np.stack([held, added.reshape(-1)]), axis=1, return_inverse=True)
        result = np.zeros(pairs.shape[1], dtype=np.int64)
        for n, (before, new) in enumerate(pairs.T.tolist()):
            if self.masks[before] & self.masks[new]:
                raise PlanError(f"{event} adds a contribution to {acc.buffer.tensor} twice")
            result[n] = self.masks.intern(self.masks[before] | self.masks[new])
        return result[inverse.reshape(-1)]

    def scratch(self, event: Event, buffer: Buffer, others: list[_Access]) -> None:
        cells = buffer.cells(buffer.box).reshape(-1)
        for access in others:
            if access.buffer.memory == buffer.memory and np.isin(cells, access.cells).any():
                raise PlanError(f"{event}: scratch {buffer.name} overlaps {access.buffer.name}")
        self.races.touch(event, buffer.memory, cells, writes=True)
        self.tokens.destroy(buffer)

    def commit(
        self, event: Event, reads: list[_Access], written: _Access, sums: IntArray | int
    ) -> None:
        """Check the order of reads and writes within the step, then write the tokens."""
        memory = written.buffer.memory
        if self.plan.memory[memory].kind in ("rom", "stream"):
            raise PlanError(f"{event} writes to {memory}, which is read-only")
        if written.buffer.role == "constant":
            raise PlanError(f"{event} writes to the constant buffer {written.buffer.name}")
        order = np.argsort(written.cells, axis=None, kind="stable")
        taken = written.cells.reshape(-1)[order]
        if (taken[1:] == taken[:-1]).any():
            raise PlanError(f"{event} writes two elements of {written.buffer.name} into one cell")
        when = written.last.repeat(written.buffer.nibbles)[order]
        for access in reads:
            self.races.touch(event, access.buffer.memory, access.cells, writes=False)
            if self.plan.memory[access.buffer.memory].kind == "stream":
                self.take(event, access)
            if access.buffer.memory == memory and access is not written:
                place = np.minimum(np.searchsorted(taken, access.cells), len(taken) - 1)
                early = (taken[place] == access.cells) & (when[place] < access.last[:, None])
                if early.any():
                    number = int(access.numbers[np.argmax(early.any(axis=1))])
                    raise PlanError(
                        f"{event} overwrites element {number} of {access.buffer.tensor} "
                        f"before its last read"
                    )
        self.races.touch(event, memory, written.cells, writes=True)
        self.tokens.write(written.buffer, written.numbers, written.cells, sums)

    def take(self, event: Event, access: _Access) -> None:
        """A stream is read once, in address order, unit after unit."""
        memory = access.buffer.memory
        order = np.argsort(access.cells[:, 0], kind="stable")
        cells = access.cells[order].reshape(-1)
        wanted = np.arange(self.stream[memory], self.stream[memory] + cells.size)
        if (
            not np.array_equal(cells, wanted)
            or (access.first != access.last).any()
            or (np.diff(access.last[order]) < 0).any()
        ):
            raise PlanError(f"{event} reads {memory} out of order or twice")
        self.stream[memory] += cells.size

    def macs_each(self, op: Operator) -> int:
        size = self.graph.tensors[op.output].size
        return op.macs(self.graph.tensors) // size if size else 0


def verify(plan: Plan, graph: Graph) -> Report:
    """Walk ``plan`` once and prove it.

    Raises:
        PlanError: the first thing that is wrong, with the step and the cell.
    """
    return _Verifier(plan, graph).run()
