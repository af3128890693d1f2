"""The memories while a plan is walked: tokens, races, streams, and the order within a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.elements import Elements
from pipeline.plan.races import Races
from pipeline.plan.tokens import Tokens
from pipeline.plan.unrolled import Event
from pipeline.plan.vocabulary import Buffer, Plan, PlanError
from pipeline.plan.zones import Zones


@dataclass(frozen=True)
class Access:
    """Elements that a step touches; ``unit`` gives the unit that does so last (or first), in the
    elements' shape, and is asked only where that matters."""

    elements: Elements
    unit: Callable[[bool], IntArray]

    @property
    def buffer(self) -> Buffer:
        return self.elements.buffer

    @cached_property
    def last(self) -> IntArray:
        return self.unit(True)

    @cached_property
    def first(self) -> IntArray:
        return self.unit(False)


def access(
    buffer: Buffer, box: Box, frame: int = 0, times: Callable[[], IntArray] | None = None
) -> Access:
    """All elements of a box, each touched by the unit that ``times()`` (the box's shape) gives."""
    elements = Elements.of(buffer, box, frame)
    return Access(
        elements, lambda _: times() if times else np.zeros(elements.shape, dtype=np.int64)
    )


def kept(plan: Plan, graph: Graph) -> set[str]:
    """Resident constants that no step of the plan could ever change or race with.

    Only buffers are written, and never those of role ``constant``; so a constant whose cells, and
    granules, lie apart from all other buffers' and from one another keeps its content.
    """
    found, tracks = set(), len(plan.tracks)
    for name in plan.resident:
        buffer = plan.buffer.get(name)
        if not buffer or buffer.role != "constant" or buffer.tensor not in graph.constants:
            continue
        others = [b for b in plan.buffers if b.name != name]
        granule = 2 * plan.memory[buffer.memory].granule_bytes if tracks > 1 else 1
        apart = (
            Elements.of(buffer, buffer.box).apart and plan.memory[buffer.memory].kind != "stream"
        )
        if apart and not any(
            buffer.meets(other, 1 if other.role == "constant" else granule) for other in others
        ):
            found.add(name)
    return found


class MemoryState:
    """The content of every cell of every memory, and who touched it when."""

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self.plan, zones = plan, Zones(plan)
        self.tokens = Tokens(plan, zones, kept(plan, graph))
        self.races = Races(plan, zones)
        self.taken: Counter[str] = Counter()

    def find(self, event: Event, access: Access) -> IntArray | int:
        """Check that the elements are there; returns their contribution mask ids."""
        return self.tokens.check(access.elements, lambda: str(event))

    def scratch(self, event: Event, buffer: Buffer, others: list[Access]) -> None:
        elements = Elements.of(buffer, buffer.box)
        for access in others:
            if (
                elements.meets(access.elements)
                and np.isin(elements.cells, access.elements.cells).any()
            ):
                raise PlanError(f"{event}: scratch {buffer.name} overlaps {access.buffer.name}")
        self.races.touch(event, elements, writes=True)
        self.tokens.destroy(elements)

    def commit(
        self, event: Event, reads: list[Access], written: Access, sums: IntArray | int
    ) -> None:
        """Check the order of reads and writes within the step, then write the tokens."""
        memory = written.buffer.memory
        if self.plan.memory[memory].kind in ("rom", "stream", "frame"):
            raise PlanError(f"{event} writes to {memory}, which is read-only")
        if written.buffer.role == "constant":
            raise PlanError(f"{event} writes to the constant buffer {written.buffer.name}")
        for access in reads:
            if access.buffer.name in self.tokens.kept:
                continue
            self.races.touch(event, access.elements, writes=False)
            if self.plan.memory[access.buffer.memory].kind == "stream":
                self.take(event, access)
            if access is not written and access.elements.meets(written.elements):
                self.in_order(event, access, written)
        self.races.touch(event, written.elements, writes=True)
        if reads and reads[-1] is written:
            self.tokens.add(written.elements, np.asarray(sums))
        elif not self.tokens.write(written.elements, sums):
            raise PlanError(f"{event} writes two elements of {written.buffer.name} into one cell")

    def in_order(self, event: Event, read: Access, written: Access) -> None:
        """Check that no unit reads what an earlier unit has overwritten."""
        low, high = written.elements.extent
        start, stop = read.elements.extent
        low, high = min(low, start) & ~1, max(high, stop)  # from a byte on
        grain = self.tokens.grain[read.buffer.memory]
        never = np.iinfo(np.int64).max
        when = np.full(-(-(high - low) // grain), never, dtype=np.int64)
        written.elements.put(when, grain, written.last[..., None], low)
        early = read.elements.take(when, grain, low) < read.last[..., None]
        if early.any():
            place = tuple(np.argwhere(early)[0, :-1])
            raise PlanError(
                f"{event} overwrites element {int(read.elements.numbers[place])} of "
                f"{read.buffer.tensor} before its last read"
            )

    def take(self, event: Event, access: Access) -> None:
        """A stream is read once, in address order, unit after unit."""
        memory, nibbles = access.buffer.memory, access.elements.cells
        if not nibbles.size:
            return
        order = np.argsort(nibbles[:, 0], kind="stable")
        cells = nibbles[order].reshape(-1)
        last, first = access.last.reshape(-1), access.first.reshape(-1)
        wanted = np.arange(self.taken[memory], self.taken[memory] + cells.size)
        if (
            not np.array_equal(cells, wanted)
            or (first != last).any()
            or (np.diff(last[order]) < 0).any()
        ):
            raise PlanError(f"{event} reads {memory} out of order or twice")
        self.taken[memory] += cells.size
        # reading moves the stream on: two tracks that both read it have to be ordered
        self.races.reserve(event, memory)
