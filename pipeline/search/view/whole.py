"""A network tensor by tensor: what reads what, when each is live, what an order of tasks holds.

Tensors and tasks (operators) are numbered; task n makes tensor n + 1. Sets of them are bit masks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Tensors

AT_END = 1 << 30
"""Time of the last read of what is kept: later than any task."""


class Span(NamedTuple):
    """Tasks ``first`` to ``stop`` (exclusive)."""

    first: int
    stop: int


class Task(NamedTuple):
    """One operator.

    Attributes:
        reads: the activations it reads, each once.
        over: those of ``reads`` whose place the output may take if they die here.
        scratch: nibbles that its kernel needs beside them while it runs.
        shares: nibbles that the output has in common with each of ``over``; of none: all of the
            smaller one.
        after: tasks that come before, besides those that make what it reads.
        before: for each of ``over`` the nibbles of the output that lie before it; if there are any,
            the output takes the places of all or of none.
    """

    reads: tuple[int, ...]
    over: tuple[int, ...] = ()
    scratch: int = 0
    shares: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    before: tuple[int, ...] = ()


class State(NamedTuple):
    """Masks of the tasks done and of those that can run; nibbles live."""

    done: int
    open: int
    cells: int


@dataclass(frozen=True)
class View:
    """
    Attributes:
        sizes: nibbles of every tensor; the first, or all that is given, is there before all tasks.
        tasks: in an order in which they can run; all are needed.
        kept: tensors that are live after the last task.
        operators: what the tasks are; ``names`` of the tensors; ``tensors``: all by name.
        given: names of what is there before all tasks, which is one tensor where tasks are counted.
        again: of each state what is read, and what has to be in its place after all tasks.
    """

    sizes: tuple[int, ...]
    tasks: tuple[Task, ...]
    kept: tuple[int, ...]
    operators: tuple[Operator, ...] = ()
    names: tuple[str, ...] = ()
    tensors: Tensors = field(default_factory=dict, repr=False)
    given: tuple[str, ...] = ()
    again: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls, tensors: Tensors, given: Sequence[str], operators: Sequence[Operator], *kept: str
    ) -> Self:
        """``operators`` in their order after all that is ``given``, with the tensors ``kept`` live
        at the end."""
        names = (given[0], *(op.output for op in operators))
        number = dict.fromkeys(given, 0) | {name: n for n, name in enumerate(names)}

        def numbers(each: Sequence[str]) -> tuple[int, ...]:
            return tuple(dict.fromkeys(number[name] for name in each))

        sizes = sum(tensors[n].nibbles for n in given), *(tensors[n].nibbles for n in names[1:])
        tasks = (Task(numbers(op.inputs), numbers(op.overwritable(tensors))) for op in operators)
        known = tuple(operators), names, tensors, tuple(given)
        return cls(sizes, tuple(tasks), numbers(kept), *known)

    @classmethod
    def each(
        cls,
        graph: Graph,
        given: Sequence[str],
        operators: Sequence[Operator],
        kept: Sequence[str],
        align: int = 1,
    ) -> Self:
        """Return the same, and in place what is joined to a state, at multiples of ``align``
        nibbles, or cut out for one; of several that are ``given`` each is a tensor of its own,
        which a task of its own brings."""
        tensors, begun = graph.tensors, len(given) if len(given) > 1 else 0
        names = ("", *given)[begun == 0 :] + tuple(op.output for op in operators)
        number = {name: n for n, name in enumerate(names)}
        tasks = [Task((), after=(n - 1,) * bool(n)) for n in range(begun)]
        made = {each.made for each in graph.states}
        kept_again = made.union(each.read for each in graph.states)
        for op in operators:
            bits, places = tensors[op.output].dtype.bits // 4, op.in_place(tensors)
            if kept_again.isdisjoint((op.output, *op.inputs)):
                places = dict.fromkeys(op.overwritable(tensors), 0)
            over = {number[name]: before * bits for name, before in places.items()}
            if any(before % align for before in over.values()):
                over = {}
            reads = tuple(dict.fromkeys(number[name] for name in op.inputs))
            before = tuple(over.values()) if any(over.values()) else ()
            waits = {*reads} if op.output in made else set()  # what becomes a state stays in place
            after = [n for n, task in enumerate(tasks) if waits.intersection(task.reads)]
            tasks.append(Task(reads, (*over,), 0, (), (*range(begun), *after), before))
        sizes = tuple(tensors[name].nibbles if name else 0 for name in names)
        ends = tuple(dict.fromkeys(number[name] for name in kept))
        known = tuple(operators), names, tensors, () if begun else tuple(given)
        again = tuple((number[each.read], number[each.made]) for each in graph.states)
        return cls(sizes, tuple(tasks), ends, *known, again)

    def reordered(self, order: Sequence[int]) -> "View":
        """Return the same where the tasks are given in ``order``."""
        operators = [self.operators[number] for number in order]
        return View.of(self.tensors, self.given, operators, *(self.names[n] for n in self.kept))

    # --- in the order given: live intervals, by name

    @cached_property
    def made(self) -> dict[str, int]:
        """The task that makes each tensor; -1 of what is given."""
        return dict.fromkeys(self.given, -1) | {name: n - 1 for n, name in enumerate(self.names)}

    @cached_property
    def read_last(self) -> dict[str, int]:
        """The task that reads each tensor last, or makes it, if none does."""
        found = self.made | {name: n for n, op in enumerate(self.operators) for name in op.inputs}
        return found | {self.names[n]: AT_END for n in self.kept}

    @cached_property
    def live(self) -> list[list[str]]:
        """Tensors that are there before each task, and after the last, and needed."""
        found: list[list[str]] = [[] for _ in range(len(self.operators) + 1)]
        for name, made in self.made.items():
            for live in found[made + 1 : self.read_last[name] + 1]:
                live.append(name)
        return found

    def nibbles(self, number: int) -> int:
        """Sum the nibbles of what is live before task ``number``."""
        return sum(self.tensors[name].nibbles for name in self.live[number])

    def dying(self, span: Span) -> list[str]:
        """Tensors that are there before ``span`` or made in it, and not needed after it."""
        return [
            name
            for name, made in self.made.items()
            if made < span.stop and span.first <= self.read_last[name] < span.stop
        ]

    # --- in any order: states, as masks

    @cached_property
    def reads(self) -> tuple[int, ...]:
        """For each task the mask of the tensors it reads."""
        return tuple(sum(1 << tensor for tensor in task.reads) for task in self.tasks)

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """For each tensor the mask of the tasks that read it; of what is kept, one more."""
        masks = [0] * len(self.sizes)
        for number, read in enumerate([*(task.reads for task in self.tasks), self.kept]):
            for tensor in read:
                masks[tensor] |= 1 << number
        return tuple(masks)

    @cached_property
    def before(self) -> tuple[int, ...]:
        """For each task the mask of those that have to be done."""
        return tuple(
            self.reads[number] >> 1 | sum(1 << each for each in task.after)
            for number, task in enumerate(self.tasks)
        )

    @cached_property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        """For each task those that wait for it."""
        found: list[list[int]] = [[] for _ in self.tasks]
        for number, mask in enumerate(self.before):
            for each in members(mask):
                found[each].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """For each tensor the mask of those it is computed from, directly or not."""
        found = [0]
        for task in self.tasks:
            mask = 0
            for tensor in task.reads:
                mask |= found[tensor] | 1 << tensor
            found.append(mask)
        return tuple(found)

    @property
    def first(self) -> State:
        open_ = sum(1 << number for number, before in enumerate(self.before) if not before)
        return State(0, open_, self.sizes[0])

    @cached_property
    def dies(self) -> tuple[tuple[tuple[int, int, int], ...], ...]:
        """For each task of each tensor that it reads the readers, the nibbles, and those that the
        output has in common with it if it dies."""
        return tuple(
            tuple((self.readers[t], self.sizes[t], self.shared(number, t)) for t in task.reads)
            for number, task in enumerate(self.tasks)
        )

    def shared(self, number: int, tensor: int) -> int:
        """Nibbles that the output of task ``number`` saves where ``tensor`` dies."""
        task, size = self.tasks[number], self.sizes[number + 1]
        smaller = (min(size, self.sizes[each]) for each in task.over)
        shares = dict(zip(task.over, task.shares or smaller, strict=True))
        return shares.get(tensor, 0)

    def run(self, state: State, number: int) -> tuple[int, State]:
        """Nibbles live while the task runs, in place if it can be, and the state after it."""
        done, during = state.done | 1 << number, state.cells + self.sizes[number + 1]
        cells, saved = during, 0
        for readers, size, share in self.dies[number]:
            if not readers & ~done:
                cells -= size
                if share > saved:
                    saved = share
        open_ = state.open & ~(1 << number)
        for each in self.followers[number]:
            if not self.before[each] & ~done:
                open_ |= 1 << each
        return during - saved + self.tasks[number].scratch, State(done, open_, cells)

    def peak(self, order: Sequence[int]) -> int:
        """Return the most nibbles that are live at once when the tasks run in ``order``."""
        state, most = self.first, self.sizes[0]
        for number in order:
            during, state = self.run(state, number)
            most = max(most, during)
        return most


def members(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set, in ascending order."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
