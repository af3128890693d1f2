"""A graph as a planner of memory sees it: numbered tensors with sizes, and tasks that make them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True)
class Task:
    """One operator.

    Attributes:
        reads: the activations it reads, each once.
        makes: its output.
        over: those of ``reads`` whose place the output may take if they die here.
        scratch: cells that its kernel needs beside them while it runs.
    """

    reads: tuple[int, ...]
    makes: int
    over: tuple[int, ...] = ()
    scratch: int = 0


class State(NamedTuple):
    """Tasks done, tensors held and tasks that can run, all as bit masks; the cells held."""

    done: int
    held: int
    open: int
    cells: int


@dataclass(frozen=True)
class Work:
    """
    Attributes:
        sizes: cells (of any unit) of every tensor, already rounded up to its alignment.
        tasks: every one is needed for the result.
        start: the tensor that is there before the first task.
        result: the tensor that must be there after the last.
    """

    sizes: tuple[int, ...]
    tasks: tuple[Task, ...]
    start: int
    result: int

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """For each tensor the mask of the tasks that read it; of the result, one more."""
        masks = [0] * len(self.sizes)
        for number, task in enumerate(self.tasks):
            for tensor in task.reads:
                masks[tensor] |= 1 << number
        masks[self.result] |= 1 << len(self.tasks)
        return tuple(masks)

    @cached_property
    def reader_numbers(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(members(mask & self.everything)) for mask in self.readers)

    @cached_property
    def needs(self) -> tuple[int, ...]:
        """For each task the mask of the tensors it reads."""
        return tuple(sum(1 << tensor for tensor in task.reads) for task in self.tasks)

    @property
    def first(self) -> State:
        held = 1 << self.start
        open_ = sum(1 << n for n, needed in enumerate(self.needs) if not needed & ~held)
        return State(0, held, open_, self.sizes[self.start])

    @property
    def everything(self) -> int:
        return (1 << len(self.tasks)) - 1

    def ready(self, state: State) -> Iterator[int]:
        """The tasks that can run next, in the given order."""
        return members(state.open)

    def dying(self, done: int, number: int) -> tuple[int, ...]:
        """The inputs that task ``number`` is the last to read, after the tasks ``done``."""
        after = done | 1 << number
        return tuple(t for t in self.tasks[number].reads if not self.readers[t] & ~after)

    def run(self, state: State, number: int) -> tuple[int, State]:
        """Cells held while the task runs, in place if it can be, and the state after it."""
        task, size = self.tasks[number], self.sizes[self.tasks[number].makes]
        done, held = state.done | 1 << number, state.held | 1 << task.makes
        during = cells = state.cells + size
        for tensor in task.reads:
            if not self.readers[tensor] & ~done:
                held, cells = held & ~(1 << tensor), cells - self.sizes[tensor]
                if tensor in task.over:
                    during = state.cells
        open_ = state.open & ~(1 << number)
        for reader in self.reader_numbers[task.makes]:
            if not self.needs[reader] & ~held:  # an input of a task to come is held once it exists
                open_ |= 1 << reader
        return during + task.scratch, State(done, held, open_, cells)

    def peak(self, order: tuple[int, ...]) -> int:
        """The most cells held at once when the tasks run in ``order``."""
        state, most = self.first, self.sizes[self.start]
        for number in order:
            during, state = self.run(state, number)
            most = max(most, during)
        return most


def members(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, in ascending order."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
