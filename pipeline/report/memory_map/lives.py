"""Live intervals of each cell of a memory.

A cell is a nibble, or as many as make ``MOST_CELLS`` of a larger memory. Its content lives from the
write to the last read; within a step that works in place both are known by the unit, as the
verifier has it. Neighbouring cells of one buffer that live alike are one piece: so rows, channels
and tiles show as they come and go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.plan.elements import Elements
from pipeline.plan.reads import array, read_indices, read_times, unit_times
from pipeline.plan.steps import Slice
from pipeline.plan.unrolled import Event
from pipeline.plan.vocabulary import KEPT, Buffer, Compute, Finish, Move, Plan, Rows, value
from pipeline.report.memory_map.cells import PLACE, Cells, Pieces, rounded
from pipeline.report.memory_map.clock import Clock, written

MOST_CELLS = 8192
MOST_EXACT = 20_000
"""Steps of a plan. In longer ones what a ring holds in one turn and the next is one piece unless it
is empty for long."""

SHORT = 1_024
"""A ring that is empty for less than one of so many parts of the whole is not seen to be."""
MOST_RECENT = 256
"""Boxes whose cells are kept: what one step writes the next ones read."""
LOOKED_INTO = 256
"""A step that takes less than one of so many parts of the whole is one piece, even in place."""


class _Walk:
    def __init__(self, plan: Plan, graph: Graph, clock: Clock) -> None:
        self.plan, self.graph, self.clock = plan, graph, clock
        self.operators = {op.name: op for op in graph.operators}
        self.memories = {}
        for memory in plan.memories:
            held = [b for b in plan.buffers if b.memory == memory.name and b.role != "constant"]
            if memory.kind == "ram" and held:
                top = max(buffer.extent[1] for buffer in held)
                least = 1 if any(buffer.bits < 8 for buffer in held) else 2
                tick = clock.end / SHORT if len(clock.events) > MOST_EXACT else 0.0
                grain = max(least, -(-top // MOST_CELLS))
                self.memories[memory.name] = Cells(top, grain, tick)
        copies = [buffer.copies * plan.frames for buffer in plan.buffers]
        self.first = dict(
            zip((b.name for b in plan.buffers), np.cumsum([0, *copies[:-1]]).tolist(), strict=True)
        )
        self.buffer_of = np.repeat(np.arange(len(copies)), copies)
        self.recent: dict[Hashable, list[tuple[IntArray, IntArray | int]]] = {}

    def run(self) -> dict[str, Pieces]:
        plan, end = self.plan, self.clock.end
        for name in plan.resident:
            self.whole(plan.buffer[name], 0.0, writes=True)
        for event, begin, stop in zip(
            self.clock.events, self.clock.begin, self.clock.stop, strict=True
        ):
            self.step(event, float(begin), float(stop))
        kept = plan.inputs if dict(plan.notes).get(KEPT) else ()
        for name in (*plan.outputs, *plan.states, *kept):
            self.whole(plan.buffer[name], end, writes=False)
        return {name: memory.pieces(self.buffer_of, end) for name, memory in self.memories.items()}

    def whole(self, buffer: Buffer, when: float, writes: bool) -> None:
        """Inputs' buffers are there from the first step, outputs' to the last."""
        for copy in range(buffer.copies if self.held(buffer) else 0):
            place = buffer.at(copy)
            memory = self.memories[buffer.memory]
            for cells, owner in self.spots(Elements.of(place, buffer.box, copy), copy):
                if writes:
                    memory.write(cells, owner, when, when)
                else:
                    memory.read(cells, owner, when)

    def held(self, buffer: Buffer) -> bool:
        return buffer.memory in self.memories and buffer.role != "constant"

    def step(self, event: Event, begin: float, stop: float) -> None:
        out = written(event)
        if out is None or not self.box(event, out):
            return
        step, target = event.step, self.plan.buffer[out.buffer]
        sources = step.ins if isinstance(step, Compute | Finish) else ()
        sources += (step.src,) if isinstance(step, Move) else ()
        sources += (step.acc,) if isinstance(step, Finish) else ()
        seen = stop - begin > self.clock.end / LOOKED_INTO
        in_place = seen and isinstance(step, Compute) and self.held(target) and any(
            self.plan.buffer[piece.buffer].meets(target) for piece in sources
        )  # fmt: skip
        if in_place and isinstance(step, Compute):
            self.in_place(event, step, begin, stop)
            return
        for piece in sources:
            for memory, cells, owner in self.touched(event, piece):
                memory.read(cells, owner, stop)
        for memory, cells, owner in self.touched(event, out):
            memory.write(cells, owner, begin, stop)

    def in_place(self, event: Event, step: Compute, begin: float, stop: float) -> None:
        """Each element is written, or read for the last time, when its unit is computed: a unit
        reads in its first half and writes in the second."""
        box = step.out.box(self.plan.buffer[step.out.buffer].shape, event.env)
        units = unit_times(tuple(high - low for low, high in box), step.unit, step.order)
        each = (stop - begin) / (int(units.max()) + 1)
        op, tensors = self.operators[step.op], self.graph.tensors
        operands = [operand for term in op.terms(tensors) for operand in term.operands]
        for piece in step.ins:
            buffer = self.plan.buffer[piece.buffer]
            for operand in operands if self.held(buffer) else ():
                if operand.tensor == buffer.tensor:
                    held = piece.box(buffer.shape, event.env)
                    grid = read_indices(operand, box, held)
                    place, turn = self.place(event, piece)
                    last = read_times(operand, box, units, grid, True)
                    elements = Elements(place, tuple(grid), self.frame(event))
                    cells, owner = self.each(elements, turn)
                    times = np.broadcast_to(last.reshape(-1, 1), cells.shape).reshape(-1)
                    when = np.asarray(begin + each * (times + 0.5), dtype=np.float64)
                    self.memories[buffer.memory].read(cells.reshape(-1), owner.reshape(-1), when)
        place, turn = self.place(event, step.out)
        cells, owner = self.each(Elements.of(place, box, self.frame(event)), turn)
        times = np.broadcast_to(units.reshape(-1, 1), cells.shape).reshape(-1)
        order = np.argsort(times, kind="stable")  # the first write of a cell counts
        flat, index = np.unique(cells.reshape(-1)[order], return_index=True)
        chosen = order[index]
        when = np.asarray(begin + each * (times[chosen] + 0.5), dtype=np.float64)
        self.memories[place.memory].write(flat, owner.reshape(-1)[chosen], when, stop)

    # --- pieces

    def box(self, event: Event, piece: Slice) -> bool:
        """Check whether anything is in the slice."""
        box = piece.box(self.plan.buffer[piece.buffer].shape, event.env)
        return all(high > low for low, high in box)

    def frame(self, event: Event) -> int:
        return value(getattr(event.step, "frame", 0), event.env)

    def place(self, event: Event, piece: Slice) -> tuple[Buffer, int]:
        """Return the buffer's place that a slice is in, and which of its copies that is."""
        buffer = self.plan.buffer[piece.buffer]
        copy = value(piece.copy, event.env) % buffer.copies
        return buffer.at(copy), copy

    def touched(
        self, event: Event, piece: Slice
    ) -> Iterator[tuple[Cells, IntArray, IntArray | int]]:
        buffer = self.plan.buffer[piece.buffer]
        if self.held(buffer) and self.box(event, piece):
            place, copy = self.place(event, piece)
            frame = 0 if buffer.tensor in self.graph.constants else self.frame(event)
            box = piece.box(buffer.shape, event.env)
            if (key := (buffer.name, copy, frame, box)) not in self.recent:
                if len(self.recent) == MOST_RECENT:
                    self.recent.clear()
                self.recent[key] = [*self.spots(Elements.of(place, box, frame), copy)]
            for cells, owner in self.recent[key]:
                yield self.memories[buffer.memory], cells, owner

    def owner(self, elements: Elements, copy: int) -> int:
        buffer = elements.buffer
        place = self.first[buffer.name] + copy * self.plan.frames + elements.frame
        return int(place) * PLACE

    def spots(self, elements: Elements, copy: int) -> Iterator[tuple[IntArray, IntArray | int]]:
        """Yield the cells of evenly spaced parts, each with its owner; of others all at once."""
        grain, owner = self.memories[elements.buffer.memory].grain, self.owner(elements, copy)
        if elements.parts is None:
            cells, owners = self.each(elements, copy)
            flat, index = np.unique(cells.reshape(-1), return_index=True)
            yield flat, owners.reshape(-1)[index]
            return
        for part in elements.parts:
            starts, length = part.runs(elements.buffer.nibbles)
            corner = [axis[one.start] for axis, one in zip(elements.axes, part.within, strict=True)]
            yield rounded(starts, length, grain), owner + _turn(elements.buffer, corner)

    def each(self, elements: Elements, copy: int) -> tuple[IntArray, IntArray]:
        """The cells of each element, and their owners: (elements, cells of an element) both."""
        grain = self.memories[elements.buffer.memory].grain
        count = max(1, elements.buffer.nibbles // grain)
        first = elements.addresses.reshape(-1, 1) // grain
        turn = _turn(elements.buffer, np.ix_(*map(array, elements.axes)))
        turns = np.broadcast_to(turn, elements.shape).reshape(-1, 1)
        cells = first + np.arange(count)
        return cells, np.broadcast_to(self.owner(elements, copy) + turns, cells.shape)


def _turn(buffer: Buffer, place: Sequence[IntArray | int]) -> IntArray | int:
    """Return how often each ring has gone round before the element at ``place``, as one number; a
    row that lies anywhere is a turn of its own."""
    rows = isinstance(buffer.map, Rows)
    rings = (1, *(0,) * (len(buffer.shape) - 1)) if rows else buffer.wrap
    turn: IntArray | int = 0
    for at, extent, ring in zip(place, buffer.shape, rings, strict=True):
        if ring:
            turn = turn * -(-extent // ring) + at // ring
    return turn


def lives(plan: Plan, graph: Graph, clock: Clock) -> dict[str, Pieces]:
    """Return what each memory that is written holds, and when; without constants (always live)."""
    return _Walk(plan, graph, clock).run()
