"""The memories while a plan is walked: tokens, races, streams, and the order within a step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.races import Races
from pipeline.plan.tokens import Tokens, grid_cells, indices, numbers
from pipeline.plan.vocabulary import Buffer, Plan, PlanError
from pipeline.plan.walk import Event


@dataclass(frozen=True)
class Access:
    """Elements of one buffer that a step touches, with the unit that does so last (and first)."""

    buffer: Buffer
    numbers: IntArray
    cells: IntArray
    last: IntArray
    first: IntArray


def elements(buffer: Buffer, box: Box, times: IntArray | None = None) -> Access:
    """All elements of a box, each touched by the unit that ``times`` (the box's shape) gives."""
    grid = indices(box)
    number = numbers(buffer.shape, grid).reshape(-1)
    when = np.zeros(number.size, dtype=np.int64) if times is None else times.reshape(-1)
    return Access(buffer, number, grid_cells(buffer, grid), when, when)


class Ledger:
    """What every cell of every memory holds, and who touched it when."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tokens = Tokens(plan)
        self.races = Races(plan, {name: len(cells) for name, cells in self.tokens.owner.items()})
        self.taken: Counter[str] = Counter()

    def find(self, event: Event, access: Access) -> IntArray:
        """Check that the elements are there; returns their contribution mask ids."""
        return self.tokens.check(access.buffer, access.numbers, access.cells, lambda: str(event))

    def scratch(self, event: Event, buffer: Buffer, others: list[Access]) -> None:
        cells = buffer.cells(buffer.box).reshape(-1)
        for access in others:
            if access.buffer.memory == buffer.memory and np.isin(cells, access.cells).any():
                raise PlanError(f"{event}: scratch {buffer.name} overlaps {access.buffer.name}")
        self.races.touch(event, buffer.memory, cells, writes=True)
        self.tokens.destroy(buffer)

    def commit(
        self, event: Event, reads: list[Access], written: Access, sums: IntArray | int
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

    def take(self, event: Event, access: Access) -> None:
        """A stream is read once, in address order, unit after unit."""
        memory = access.buffer.memory
        order = np.argsort(access.cells[:, 0], kind="stable")
        cells = access.cells[order].reshape(-1)
        wanted = np.arange(self.taken[memory], self.taken[memory] + cells.size)
        if (
            not np.array_equal(cells, wanted)
            or (access.first != access.last).any()
            or (np.diff(access.last[order]) < 0).any()
        ):
            raise PlanError(f"{event} reads {memory} out of order or twice")
        self.taken[memory] += cells.size
        # reading moves the stream on: two tracks that both read it have to be ordered
        self.races.touch(event, memory, np.zeros(1, dtype=np.int64), writes=True)
