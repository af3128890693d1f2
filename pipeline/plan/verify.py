"""Prove a plan: walk it once with a token in every memory cell. Knows no strategy and no operator.

Accepted means: every read finds exactly the complete element it needs; accumulators get every atom
once before they are finished; a unit's reads precede its writes; nothing leaves its memory; a
stream is read once and in order; tracks neither race nor deadlock; outputs are there at the end.
So is each state, where the next call looks for it: as every call begins with nothing else but
constants and its input, what one leaves is what the next one reads, in any number of calls.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Self

import numpy as np

from pipeline.graph.access import Operand, Term, size_of
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Box, DType, IntArray
from pipeline.plan import matches
from pipeline.plan.contributions import Masks, contributed
from pipeline.plan.elements import Elements
from pipeline.plan.memory_state import Access, MemoryState, access
from pipeline.plan.reads import check_units, read_indices, read_times, reads_all, unit_times
from pipeline.plan.tokens import COMPLETE, form
from pipeline.plan.unrolled import Event, walk
from pipeline.plan.vocabulary import (
    KEPT,
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

Times = Callable[[], IntArray]


@dataclass(frozen=True)
class Report:
    """Work that a verified plan does.

    Attributes:
        steps: steps walked, loops unrolled.
        computed: output elements computed, by operator; more than the tensor has is recomputation.
        recomputed: output elements computed beyond once each, by operator.
        macs_executed: multiply–accumulates of a frame, padding included, recomputation too.
    """

    steps: int
    computed: dict[str, int]
    recomputed: dict[str, int]
    macs_executed: int


class _Made(NamedTuple):
    """The reads and work that make an operator's output element.

    Attributes:
        summed, ending: what its terms read, and what the end of their sum reads.
        added, ended, read: the tensors of the former, of the latter and of both.
        needed: all that there is of those that are summed.
        macs: multiply–accumulates, padding included.
    """

    name: str
    terms: tuple[Term, ...]
    summed: tuple[Operand, ...]
    ending: tuple[Operand, ...]
    added: set[str]
    ended: set[str]
    read: set[str]
    needed: dict[str, Box]
    macs: float

    @classmethod
    def of(cls, op: Operator, graph: Graph) -> Self:
        tensors, terms = graph.tensors, op.terms(graph.tensors)
        summed = tuple(operand for term in terms for operand in term.operands)
        ending = tuple(op.completion(tensors))
        added, ended = ({operand.tensor for operand in each} for each in (summed, ending))
        needed = {name: tensors[name].box for name in added}
        macs = op.macs(tensors) / tensors[op.output].size
        return cls(
            op.name, terms, summed=summed, ending=ending, added=added, ended=ended,
            read=added | ended, needed=needed, macs=macs,
        )  # fmt: skip


class _Reading(NamedTuple):
    """Reads of an event's step for the outputs ``box``: the part of each tensor that its slices
    hold, and where."""

    event: Event
    frame: int
    box: Box
    times: Times
    places: dict[str, Buffer]
    available: dict[str, Box]

    def holds(self, operand: Operand, whole: Box) -> bool:
        """Return all that is read of the tensor's box ``whole``."""
        held = self.available.get(operand.tensor, ((0, 0),) * len(whole))
        return reads_all(operand, self.box, held, whole)


@dataclass
class _Verifier:
    plan: Plan
    graph: Graph
    memory: MemoryState = field(init=False)
    masks: Masks = field(default_factory=Masks)
    macs: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    computed: Counter[str] = field(default_factory=Counter)
    sums: dict[str, tuple[int, int]] = field(default_factory=dict)
    making: dict[str, _Made] = field(default_factory=dict)
    steps: int = 0

    def __post_init__(self) -> None:
        matches.check(self.plan, self.graph)
        self.memory = MemoryState(self.plan, self.graph)
        self.tokens = self.memory.tokens
        self.operators = {op.name: op for op in self.graph.operators}
        for name in self.plan.resident:
            buffer = self.plan.buffer[name]
            if name in self.tokens.kept:
                continue
            for elements in self.each_frame(buffer):
                if not self.tokens.empty(elements):
                    raise PlanError(f"resident buffer {name} overlaps another one")
                if not self.tokens.write(elements, COMPLETE):
                    raise PlanError(f"resident buffer {name} has two elements in one cell")

    def each_frame(self, buffer: Buffer) -> list[Elements]:
        """All of a buffer of the input or the output for each frame; a constant is of none."""
        frames = range(buffer.copies)
        return [Elements.of(buffer.at(frame), buffer.box, frame) for frame in frames]

    def constant(self, buffer: Buffer) -> bool:
        return buffer.tensor in self.graph.constants

    def run(self) -> Report:
        handlers = {Compute: self.compute, Clear: self.clear, Finish: self.finish, Move: self.move}
        for event in walk(self.plan):
            self.steps += 1
            self.memory.races.step(event)
            handler = handlers.get(type(event.step))
            if handler is not None:
                handler(event, event.step)  # type: ignore[operator]
        for name in (*self.plan.outputs, *self.plan.states):
            for elements in self.each_frame(self.plan.buffer[name]):
                self.tokens.check(elements, lambda: "the plan's end")
        kept = dict(self.plan.notes).get(KEPT)
        for name in self.plan.resident:
            buffer = self.plan.buffer[name]
            if (kept and buffer.tensor in self.graph.inputs) or self.constant(buffer):
                for elements in self.each_frame(buffer):
                    self.tokens.check(elements, lambda: "the next frame")
        frames = self.plan.frames
        once = {op.name: frames * self.graph.tensors[op.output].size for op in self.graph.operators}
        again = {n: count - once[n] for n, count in self.computed.items()}
        return Report(
            self.steps,
            dict(self.computed),
            {name: count for name, count in again.items() if count > 0},
            round(sum(self.macs.values()) / frames),
        )

    # --- steps

    def compute(self, event: Event, step: Compute) -> None:
        op, out = self.operators[step.op], self.place(event, step.out)
        self.expect(event, out, op.output, "accumulator" if step.partial else "activation")
        frame, box, made = self.frame(event), self.box(event, step.out), self.made(op)
        if not size_of(box):
            return
        times = self.times(event, box, step.unit, step.order)
        reading = self.reading(event, step.ins, made, box, times)
        if others := reading.places.keys() - (made.added if step.partial else made.read):
            raise PlanError(f"{event} has a slice of {min(others)}, which it does not read")
        reads = [self.operand(reading, o) for o in made.summed if o.tensor in reading.places]
        written = access(out, box, frame, lambda: times() + step.delay)
        sums: IntArray | int = COMPLETE
        if step.partial:
            self.divisible(event, op)
            reads.append(written)
            sums = self.add_up(event, made, written, reading.available)
        else:
            reads += self.completion(reading, made)
            self.whole(reading, made)
            self.computed[op.name] += written.elements.size
        for name in step.scratch:
            self.memory.scratch(event, self.plan.buffer[name], [*reads, written])
        self.memory.commit(event, reads, written, sums)

    def clear(self, event: Event, step: Clear) -> None:
        op, acc = self.operators[step.op], self.place(event, step.acc)
        self.expect(event, acc, op.output, "accumulator")
        self.divisible(event, op)
        self.sums_fit(event, op, acc)
        frame, box = self.frame(event), self.box(event, step.acc)
        if size_of(box):
            self.memory.commit(event, [], access(acc, box, frame), 0)

    def finish(self, event: Event, step: Finish) -> None:
        op = self.operators[step.op]
        acc, out = self.place(event, step.acc), self.place(event, step.out)
        self.expect(event, acc, op.output, "accumulator")
        self.expect(event, out, op.output, "activation")
        frame, box, made = self.frame(event), self.box(event, step.out), self.made(op)
        if self.box(event, step.acc) != box:
            raise PlanError(f"{event} finishes other elements than it writes")
        if not size_of(box):
            return
        times = self.times(event, box, step.unit, ())
        held = access(acc, box, frame, times)
        reading = self.reading(event, step.ins, made, box, times)
        if others := reading.places.keys() - made.ended:
            raise PlanError(f"{event} has a slice of {min(others)}, which it does not read")
        reads = self.completion(reading, made)
        found = self.memory.find(event, held)
        (full,) = contributed(self.masks, made.terms, box, [made.needed])
        wrong = np.asarray(found != full.each())
        if wrong.any():
            number = int(held.elements.numbers[tuple(np.argwhere(wrong)[0])])
            raise PlanError(f"{event} finds element {number} of {op.output} incomplete")
        written = access(out, box, frame, times)
        self.memory.commit(event, [*reads, held], written, COMPLETE)
        self.computed[op.name] += written.elements.size

    def move(self, event: Event, step: Move) -> None:
        source, target = self.place(event, step.src), self.place(event, step.dst)
        if form(source) != form(target):
            raise PlanError(f"{event} turns {source.name} into {target.name}")
        frame, box, to = self.frame(event), self.box(event, step.src), self.box(event, step.dst)
        if not size_of(box) + size_of(to):
            return
        if to != box:
            raise PlanError(f"{event} reads other elements of {source.tensor} than it writes")
        frame = 0 if self.constant(source) else frame
        read = access(source, box, frame)
        sums = self.memory.find(event, read)
        self.memory.commit(event, [read], access(target, box, frame), sums)

    # --- pieces

    def made(self, op: Operator) -> _Made:
        if op.name not in self.making:
            self.making[op.name] = _Made.of(op, self.graph)
        return self.making[op.name]

    def place(self, event: Event, piece: Slice) -> Buffer:
        return self.plan.buffer[piece.buffer].at(value(piece.copy, event.env))

    def box(self, event: Event, piece: Slice) -> Box:
        return piece.box(self.plan.buffer[piece.buffer].shape, event.env)

    def reading(
        self, event: Event, ins: tuple[Slice, ...], made: _Made, box: Box, times: Times
    ) -> _Reading:
        """Collect what the slices hold, by tensor: a kernel begins at their first element, so none
        may lie outside of its tensor."""
        places, available = dict[str, Buffer](), dict[str, Box]()
        for piece in ins:
            place, held = self.place(event, piece), self.box(event, piece)
            places[place.tensor], available[place.tensor] = place, held
            if any(
                low == high and size for (low, high), size in zip(held, piece.size, strict=True)
            ):
                raise PlanError(f"{event}: its slice of {piece.buffer} lies outside of the tensor")
        if len(places) != len(ins):
            raise PlanError(f"{event} reads one tensor through two slices")
        return _Reading(event, self.frame(event), box, times, places, available)

    def frame(self, event: Event) -> int:
        """Return the frame whose activations the step reads and writes."""
        frame = value(getattr(event.step, "frame", 0), event.env)
        if not 0 <= frame < self.plan.frames:
            raise PlanError(f"{event} is of frame {frame} of {self.plan.frames}")
        return frame

    def expect(self, event: Event, buffer: Buffer, tensor: str, role: str) -> None:
        if buffer.tensor != tensor or buffer.role != role:
            raise PlanError(f"{event} needs an {role} buffer of {tensor}, not {buffer.name}")

    def divisible(self, event: Event, op: Operator) -> None:
        if op.combine == "whole":
            raise PlanError(f"{event}: {op.name} cannot be computed in parts")

    def sums_fit(self, event: Event, op: Operator, acc: Buffer) -> None:
        """Exact sums must fit; those that are rounded saturate, which needs them to be sums."""
        if acc.step == 0:
            raise PlanError(f"{event}: the step of {acc.name} is not chosen; calibrate the plan")
        if acc.step > 1 and op.combine == "add":
            return
        if op.name not in self.sums:
            self.sums[op.name] = op.partial_sums(self.graph.tensors, self.graph.constants)
        low, high = self.sums[op.name]
        width = DType(acc.bits, signed=True)
        if acc.step > 1 or low < width.minimum or high > width.maximum:
            raise PlanError(
                f"{event}: sums of {low}…{high} do not fit {acc.name}'s {acc.bits} bits"
            )

    def times(
        self, event: Event, box: Box, unit: tuple[int, ...], order: tuple[tuple[int, ...], ...]
    ) -> Times:
        """The unit that computes each element of ``box``, worked out when it is asked for."""
        extents = tuple(stop - start for start, stop in box)
        check_units(extents, unit, order)
        return cache(lambda: unit_times(extents, unit, order))

    def operand(self, reading: _Reading, operand: Operand) -> Access:
        """Return the elements of one operand that the step reads, checked."""
        event, frame, box, times, *_ = reading
        buffer = reading.places[operand.tensor]
        if buffer.role == "accumulator":
            raise PlanError(f"{event} reads the accumulators {buffer.name}: finish them first")
        grid = read_indices(operand, box, reading.available[operand.tensor])
        elements = Elements(buffer, tuple(grid), 0 if self.constant(buffer) else frame)
        access = Access(elements, lambda last: read_times(operand, box, times(), grid, last))
        self.memory.find(event, access)
        return access

    def completion(self, reading: _Reading, made: _Made) -> list[Access]:
        """Collect what the end of a sum reads, such as the bias: all must be in the slices."""
        result = []
        for operand in made.ending:
            if not reading.holds(operand, self.graph.tensors[operand.tensor].box):
                event = reading.event
                raise PlanError(f"{event} is incomplete: it lacks part of {operand.tensor}")
            result.append(self.operand(reading, operand))
        return result

    def whole(self, reading: _Reading, made: _Made) -> None:
        """Every element of the box must get all its atoms; counts the multiply–accumulates."""
        box, needed = reading.box, made.needed
        if not all(reading.holds(operand, needed[operand.tensor]) for operand in made.summed):
            # a missing part may still meet nothing but another operand's padding
            some, full = contributed(self.masks, made.terms, box, [reading.available, needed])
            if (some.ids != full.ids).any():
                event = reading.event
                raise PlanError(f"{event} is incomplete: its slices do not hold all it needs")
        self.macs[made.name] += made.macs * size_of(box)

    def add_up(self, event: Event, made: _Made, acc: Access, available: dict[str, Box]) -> IntArray:
        """Mask ids after adding; the accumulators must be open and hold none of it yet.

        Counts each element's share of the multiply–accumulates of its whole sum.
        """
        box = acc.elements.ends
        some, full = contributed(self.masks, made.terms, box, [available, made.needed])
        ids = zip(some.ids.flat, full.ids.flat, strict=True)
        for (part, all_), count in zip(ids, some.counts().flat, strict=True):
            atoms = self.masks.atoms[all_]
            share = self.masks.atoms[part] / atoms if atoms else 1.0  # only padding
            self.macs[made.name] += int(count) * share * made.macs
        held = np.asarray(self.memory.find(event, acc))
        added = some.each()
        kinds = len(self.masks)
        pairs, inverse = _kinds(held * kinds + added)
        result = np.zeros(len(pairs), dtype=np.int64)
        for n, pair in enumerate(pairs.tolist()):
            before, new = divmod(pair, kinds)
            if self.masks[before] & self.masks[new]:
                raise PlanError(f"{event} adds a contribution to {acc.buffer.tensor} twice")
            result[n] = self.masks.intern(self.masks[before] | self.masks[new])
        return result[inverse.reshape(-1)].reshape(added.shape)


def _kinds(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the different ones of ``numbers`` and which of them each is: most often all alike."""
    if (numbers == numbers.flat[0]).all():
        return numbers.reshape(-1)[:1], np.zeros(numbers.size, dtype=np.int64)
    return np.unique(numbers, return_inverse=True)


def verify(plan: Plan, graph: Graph) -> Report:
    """Walk ``plan`` once and prove it.

    Raises:
        PlanError: the first thing that is wrong, with the step and the cell.
    """
    return _Verifier(plan, graph).run()
