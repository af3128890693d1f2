"""A network as rows: units that make one row each, from rows.

A unit makes a row, lets one in, or opens, adds to and closes the sums of what adds up all rows of
its input. What it writes and reads are blocks: rows, or sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.hardware import Hardware
from pipeline.schedules.draft import Draft
from pipeline.schedules.patches import Patches, Run
from pipeline.schedules.rows import (
    Arrive,
    RowsStep,
    RowStep,
    over_dying,
    read_by,
    row_box,
    rows_of,
    saved,
)
from pipeline.search.view.whole import Task, View

SUM_NIBBLES = 8
"""Of an exact accumulator."""


Known = tuple[dict[str, int], list[dict[str, range]]]


class Unit(NamedTuple):
    """
    Attributes:
        reads: blocks, each with the cells that the written one may share with it if it dies, less
            what is kept aside for that.
        writes: a block.
        after: units that have to be done before, in the order in which they are asked for.
        within: cells that it takes meanwhile besides those that it reads and writes.
    """

    step: RowsStep
    reads: tuple[tuple[int, int], ...]
    writes: int
    after: tuple[int, ...]
    within: int = 0


@dataclass
class Units:
    """
    Attributes:
        operators: those that are needed, in order.
        streamed: the input arrives row by row; else all of it is there from the start.
        pixels: of a block, by the tensors whose rows lie in blocks.
        runs: that are made patch by patch.
        alone: what no kernel makes row by row; one call makes all of it.
        known: of operators that make rows, what cells those save and which rows they read.
        blocks: of each tensor its rows' blocks, in order, rows that are made together one; none of
            tensors within a run. ``sizes``: cells (nibbles) of each.
        makers: of each block the unit that completes it; none for the input that is there.
        needed: blocks that the output depends on.
        readers: of each block the numbers of the operators that need it, one for each unit that
            reads it, in order.
        numbers: of each unit that of its operator; -1 of the input's rows.
    """

    graph: Graph
    operators: Sequence[Operator]
    streamed: bool
    pixels: Mapping[str, int] = field(default_factory=dict)
    runs: Sequence[Run] = ()
    known: dict[str, Known] = field(default_factory=dict)
    alone: frozenset[str] = frozenset()
    units: list[Unit] = field(default_factory=list)
    blocks: dict[str, Sequence[int]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    makers: dict[int, int] = field(default_factory=dict)
    needed: set[int] = field(default_factory=set)
    readers: list[list[int]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        graph: Graph,
        hardware: Hardware,
        operators: Sequence[Operator],
        streamed: bool,
        pixels: Mapping[str, int] | None = None,
        runs: Sequence[Run] = (),
        known: dict[str, Known] | None = None,
        alone: frozenset[str] = frozenset(),
    ) -> Units:
        """``known``: from units of the same operators and ``pixels``."""
        known = {} if known is None else known
        found = cls(graph, operators, streamed, pixels or {}, runs, known, alone)
        inner = {name for run in runs for name in run.inner}
        patched = {run.op.output: run for run in runs}
        found._add_blocks(graph.input)
        if streamed:
            for row, block in enumerate(found.blocks[graph.input]):
                before = (found.makers[block - 1],) if row else ()
                found._add(Unit(Arrive(row), (), block, before))
        draft = Draft(graph, hardware)
        for name in (graph.input, *(op.output for op in operators)):
            if rows_of(graph, name) > 1:
                draft.hold_rows(name, pixels=found.pixels.get(name, 0))
            else:
                draft.hold(name)
        for op in operators:
            if op.output in inner:
                found.blocks[op.output] = ()
                continue
            if run := patched.get(op.output):
                found._patches(run)
                continue
            if op.output in alone:
                found._all(op)
                continue
            found._add_blocks(op.output)
            if adds_rows(op, graph):
                found._sums(op)
            else:
                found._rows(op, draft)
        found._trace()
        return found

    def held(self, tensors: Iterable[str]) -> list[int]:
        """Blocks of ``tensors`` that are there when these are whole: rows that are needed, and all
        of an input that is there from the start."""
        return [
            block
            for name in tensors
            for block in dict.fromkeys(self.blocks[name])
            if block in self.needed or block not in self.makers
        ]

    def view(self, order: Sequence[int], target: Iterable[str]) -> tuple[View, int]:
        """The units of ``order``, which begins with nothing or with the input, as tasks, after as
        many that give what is there: sums are a tensor anew with each row that is added."""
        image = [] if self.streamed else self.blocks[self.graph.input]
        given = [block for block in image if block in self.needed]
        unread = sum(self.sizes[block] for block in image if block not in self.needed)
        tensor, tasks, sizes = dict[int, int](), list[Task](), [0]
        number = {unit: len(given) + place for place, unit in enumerate(order)}
        for block in given:
            tasks.append(Task((), after=(len(tasks) - 1,) * bool(tasks)))
            sizes.append(self.sizes[block])
            tensor[block] = len(tasks)
        if given:
            tasks[-1] = tasks[-1]._replace(scratch=unread)
        begun = (len(given) - 1,) * bool(given)
        for unit in order:
            _, reads, made, after, within = self.units[unit]
            shared = {tensor[block]: share for block, share in reads}
            if made in tensor:
                shared[tensor[made]] = self.sizes[made]
            after = (*begun, *(number[each] for each in after if each in number))
            over, shares = tuple(shared), tuple(shared.values())
            tasks.append(Task(over, over, within, shares, after))
            sizes.append(self.sizes[made])
            tensor[made] = len(tasks)
        kept = dict.fromkeys(tensor[block] for name in target for block in self.blocks[name])
        return View(tuple(sizes), tuple(tasks), tuple(kept)), len(given)

    def beside(self, unit: int, together: int) -> Sequence[int]:
        """The units that make, or let in, ``together`` rows of one tensor, ``unit`` among them, as
        far as they are needed."""
        step = self.units[unit].step
        if isinstance(step, RowStep) and step.kind != "make":
            return (unit,)
        tensor = self.graph.input if isinstance(step, Arrive) else step.op.output
        first = step.row - step.row % together
        rows = self.blocks[tensor][first : first + together]
        return [self.makers[block] for block in rows if block in self.needed]

    def _add_blocks(self, tensor: str) -> None:
        of, count = self.graph.tensors[tensor], rows_of(self.graph, tensor)
        first = len(self.sizes)
        self.sizes += [of.size * of.dtype.bits // 4 // count] * count
        self.blocks[tensor] = range(first, first + count)

    def _add(self, unit: Unit) -> int:
        self.units.append(unit)
        self.makers[unit.writes] = len(self.units) - 1
        return len(self.units) - 1

    def _rows(self, op: Operator, draft: Draft) -> None:
        if op.name not in self.known:
            every = range(len(self.blocks[op.output]))
            boxes = (row_box(self.graph, op.output, row) for row in every)
            rows_read = [read_by(op, draft.needs(op, box)) for box in boxes]
            self.known[op.name] = self._shares(op, draft), rows_read
        shares, rows_read = self.known[op.name]
        for row, (block, read) in enumerate(zip(self.blocks[op.output], rows_read, strict=True)):
            reads = [
                (self.blocks[name][at], shares[name]) for name, rows in read.items() for at in rows
            ]
            self._add(Unit(RowStep("make", op, row), tuple(reads), block, self._makers(reads)))

    def _patches(self, run: Run) -> None:
        """Rows that are made together live together: it may be less."""
        tensor, blocks = self.graph.tensors[run.op.output], list[int]()
        height = rows_of(self.graph, tensor.name)
        for top in run.tops:
            block, some = len(self.sizes), min(run.rows, height - top)
            self.sizes.append(some * tensor.size * tensor.dtype.bits // 4 // height)
            blocks += [block] * some
            step = Patches(run, top)
            rows = step.rows_read().items()
            read = dict.fromkeys(self.blocks[name][at] for name, each in rows for at in each)
            reads = tuple((each, 0) for each in read)
            self._add(Unit(step, reads, block, self._makers(reads), run.held))
        self.blocks[run.op.output] = blocks

    def _all(self, op: Operator) -> None:
        """Rows that one call makes, of all rows of its inputs."""
        block, tensor = len(self.sizes), self.graph.tensors[op.output]
        self.sizes.append(tensor.size * tensor.dtype.bits // 4)
        reads = [(each, 0) for n in dict.fromkeys(op.inputs) for each in self.blocks[n]]
        reads = list(dict.fromkeys(reads))
        self._add(Unit(RowStep("all", op), tuple(reads), block, self._makers(reads)))
        self.blocks[tensor.name] = [block] * rows_of(self.graph, tensor.name)

    def _sums(self, op: Operator) -> None:
        sums, (block,) = len(self.sizes), self.blocks[op.output]
        self.sizes.append(SUM_NIBBLES * prod(self.graph.tensors[op.output].shape))
        rows = [((each, 0),) for each in self.blocks[op.inputs[0]]]
        last = self._add(Unit(RowStep("open", op), (), sums, self._makers(rows[0])))
        adds = [last]
        for row, read in enumerate(rows):
            after = (*self._makers(read), last)
            last = self._add(Unit(RowStep("add", op, row), read, sums, after))
            adds.append(last)
        over = self.sizes[block]
        self._add(Unit(RowStep("close", op), ((sums, over),), block, tuple(adds)))

    def _shares(self, op: Operator, draft: Draft) -> dict[str, int]:
        """Cells that a row of the output saves by lying over a row of each input that dies; the
        same for all rows."""
        middle = len(self.blocks[op.output]) // 2
        gaps = over_dying(draft, op, middle)
        shares = {name: saved(self.graph, op, name, gap) for name, gap in gaps.items()}
        return dict.fromkeys(op.inputs, 0) | shares

    def _makers(self, reads: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        return tuple(self.makers[block] for block, _ in reads if block in self.makers)

    def _trace(self) -> None:
        """What nobody needs is not made."""
        pending = [self.makers[block] for block in self.blocks[self.graph.output]]
        seen = set(pending)
        while pending:
            unit = self.units[pending.pop()]
            self.needed |= {unit.writes, *(block for block, _ in unit.reads)}
            pending += (new := [each for each in unit.after if each not in seen])
            seen.update(new)
        number = {op.output: number for number, op in enumerate(self.operators)}
        steps = (unit.step for unit in self.units)
        self.numbers = [-1 if isinstance(s, Arrive) else number[s.op.output] for s in steps]
        self.readers = [[] for _ in self.sizes]
        for each in sorted(seen):
            for block, _ in self.units[each].reads:
                self.readers[block].append(self.numbers[each])


def adds_rows(op: Operator, graph: Graph) -> bool:
    """It adds up all rows of its one input, of which there are several; no convolution, whose code
    takes the taps of a kernel all at once, nor a padded average, whose code counts the pixels of
    each window as it ends it, nor anything of less than bytes, whose code makes whole pixels."""
    height = rows_of(graph, op.inputs[0])
    operand = next(o for o in op.reads(graph.tensors) if o.tensor == op.inputs[0])
    return (
        op.combine == "add"
        and not isinstance(op, Conv2d)
        and not (isinstance(op, AveragePool2d) and any(op.padding))
        and len(op.inputs) == 1
        and graph.tensors[op.inputs[0]].dtype.bits >= 8
        and height > 1
        and rows_of(graph, op.output) == 1
        and operand.windows[0].count >= height
        and operand.windows[0].offset == 0
    )
