"""A network as rows: units that make one row each, from rows.

A unit makes a row, lets one in, or opens, adds to and closes the sums of what adds up all rows of
its input. What it writes and reads are blocks: rows, or sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD
from pipeline.schedules.arriving import lasting, lying
from pipeline.schedules.channels import Pooled
from pipeline.schedules.draft import Draft
from pipeline.schedules.patches import Run
from pipeline.schedules.rows import Arrive, RowsStep, RowStep, over_dying, reads, rows_of, saved
from pipeline.search.view.whole import Task, View


class Unit(NamedTuple):
    """
    Attributes:
        reads: blocks; ``shares``: the cells that the written one may share with each if it dies,
            less what is kept aside for that.
        writes: a block.
        before: units that have to be done, those that make what it reads last; none of them -1.
        within: cells that it takes meanwhile besides those that it reads and writes.
    """

    step: RowsStep
    reads: tuple[int, ...]
    shares: tuple[int, ...]
    writes: int
    before: tuple[int, ...]
    within: int = 0


@dataclass
class Units:
    """
    Attributes:
        operators: those that are needed, in order.
        streamed: the input arrives row by row; else all inputs are there from the start.
        pixels: of a block, by the tensors whose rows lie in blocks.
        runs: that are made patch by patch, or channel by channel.
        alone: what no kernel makes row by row; one call makes all of it.
        alike: the ``draft`` of units of the same operators and ``pixels``; it knows what they read.
        blocks: of each tensor its rows' blocks, in order, rows that are made together one; none of
            tensors within a run. ``sizes``: cells (nibbles) of each.
        makers: of each block the unit that completes it; -1 for the input that is there.
        needed: whether an output depends on each block.
        begins: of each operator its first unit; rows that arrive belong to the first operator.
        readers: of each block the numbers of the operators that need it, one for each unit that
            reads it, in order.
    """

    graph: Graph
    hardware: Hardware
    operators: Sequence[Operator]
    streamed: bool
    pixels: Mapping[str, int] = field(default_factory=dict)
    runs: Sequence[Run | Pooled] = ()
    alone: frozenset[str] = frozenset()
    alike: Draft | None = None
    draft: Draft = field(init=False)
    units: list[Unit] = field(default_factory=list)
    blocks: dict[str, Sequence[int]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    makers: list[int] = field(default_factory=list)
    needed: bytearray = field(init=False)
    begins: list[int] = field(default_factory=lambda: [0])
    readers: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draft = draft = self.alike or drafted(
            self.graph, self.hardware, self.operators, self.pixels
        )
        for name in self.graph.starts:
            self._add_blocks(name)
        if self.streamed:
            for row, block in enumerate(self.blocks[self.graph.start]):
                self._add(Arrive(row), block, after=(row - 1,) * bool(row))
        inner = {name for run in self.runs for name in run.inner}
        patched = {run.op.output: run for run in self.runs}
        for op in self.operators:
            if op.output in inner:
                self.blocks[op.output] = ()
            else:
                self._make(op, patched.get(op.output), draft)
            self.begins.append(len(self.units))
        self._trace()

    def held(self, tensors: Iterable[str]) -> list[int]:
        """Blocks of ``tensors`` that are there when these are whole: rows that are needed, and all
        of an input that is there from the start."""
        return [
            block
            for name in tensors
            for block in dict.fromkeys(self.blocks[name])
            if self.needed[block] or self.makers[block] < 0
        ]

    def view(self, order: Sequence[int], target: Iterable[str]) -> tuple[View, int]:
        """The units of ``order``, which begins with nothing or with the input, as tasks, after as
        many that give what is there: sums are a tensor anew with each row that is added."""
        inputs = () if self.streamed else self.graph.starts
        image = [block for name in inputs for block in self.blocks[name]]
        given = [block for block in image if self.needed[block]]
        unread = sum(self.sizes[block] for block in image if not self.needed[block])
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
            _, reads, shares, made, before, within = self.units[unit]
            shared = {tensor[block]: share for block, share in zip(reads, shares, strict=True)}
            if made in tensor:
                shared[tensor[made]] = self.sizes[made]
            after = (*begun, *(number[each] for each in before if each in number))
            over = tuple(shared)
            tasks.append(Task(over, over, within, tuple(shared.values()), after))
            sizes.append(self.sizes[made])
            tensor[made] = len(tasks)
        kept = dict.fromkeys(tensor[block] for name in target for block in self.blocks[name])
        return View(tuple(sizes), tuple(tasks), tuple(kept)), len(given)

    def _add_blocks(self, tensor: str, together: int = 1) -> None:
        """Rows that are made ``together`` live together."""
        of, count = self.graph.tensors[tensor], rows_of(self.graph, tensor)
        first, row = len(self.sizes), of.nibbles // count
        if tensor in self.draft.elsewhere:
            row = 0
        self.sizes += [row * min(together, count - top) for top in range(0, count, together)]
        self.makers += [-1] * (len(self.sizes) - first)
        self.blocks[tensor] = [first + row // together for row in range(count)]

    def _add(
        self, step: RowsStep, writes: int, reads: Mapping[int, int] = MappingProxyType({}),
        after: Iterable[int] = (), within: int = 0,
    ) -> int:  # fmt: skip
        """``reads``: blocks, with their shares; ``after``: units, -1 for none."""
        before = dict.fromkeys((*after, *map(self.makers.__getitem__, reads)))
        before.pop(-1, None)
        shares = tuple(reads.values())
        if self.units and shares == self.units[-1].shares:
            shares = self.units[-1].shares  # one tuple for most rows of an operator
        self.units.append(Unit(step, tuple(reads), shares, writes, tuple(before), within))
        self.makers[writes] = len(self.units) - 1
        return len(self.units) - 1

    def _make(self, op: Operator, run: Run | Pooled | None, draft: Draft) -> None:
        """Add what makes all rows of ``op``'s output."""
        height, shares, within = rows_of(self.graph, op.output), dict[str, int](), 0
        steps: Sequence[RowsStep]
        if run:
            together, within, steps = run.rows, run.held, run.each
        elif op.output in self.alone:
            together, steps = height, [RowStep("all", op)]
        elif adds_rows(op, self.graph):
            self._add_blocks(op.output)
            self._sum(op)
            return
        else:
            together, steps = 1, [RowStep("make", op, row) for row in range(height)]
            offsets = over_dying(draft, op, height // 2)  # the same for all rows
            shares = {name: saved(self.graph, op, name, safe) for name, safe in offsets.items()}
        self._add_blocks(op.output, together)
        for step, block in zip(steps, dict.fromkeys(self.blocks[op.output]), strict=True):
            read = {
                self.blocks[name][at]: shares.get(name, 0)
                for name, rows in reads(step, self.graph, draft.needs).items()
                for at in rows
            }
            self._add(step, block, read, within=within)

    def _sum(self, op: Operator) -> None:
        """Open its sums, add each row of its input, and close them."""
        sums, (block,) = len(self.sizes), self.blocks[op.output]
        self.sizes.append(WORD * self.graph.tensors[op.output].size)
        self.makers.append(-1)
        rows = self.blocks[op.inputs[0]]
        adds = [self._add(RowStep("open", op), sums, after=[self.makers[rows[0]]])]
        for row, each in enumerate(rows):
            adds.append(self._add(RowStep("add", op, row), sums, {each: 0}, adds[-1:]))
        self._add(RowStep("close", op), block, {sums: self.sizes[block]}, adds)

    def _trace(self) -> None:
        """Trace what the outputs need, and who reads it: what nobody needs is not made."""
        pending = [self.makers[block] for name in self.graph.ends for block in self.blocks[name]]
        seen, self.needed = {-1, *pending}, bytearray(len(self.sizes))
        while pending:
            unit = self.units[pending.pop()]
            for block in (unit.writes, *unit.reads):
                self.needed[block] = True
            pending += (new := {*unit.before} - seen)
            seen.update(new)
        counts = (stop - begin for begin, stop in pairwise(self.begins))
        numbers = [number for number, count in enumerate(counts) for _ in range(count)]
        self.readers = [[] for _ in self.sizes]
        for each in sorted(seen)[1:]:
            for block in self.units[each].reads:
                self.readers[block].append(numbers[each])


def drafted(
    graph: Graph, hardware: Hardware, operators: Iterable[Operator], pixels: Mapping[str, int]
) -> Draft:
    """Return a draft that holds all rows."""
    draft, names = Draft(graph, hardware), [op.output for op in operators]
    if lasting(graph, hardware):
        lying(draft)
    else:
        names = [*graph.starts, *names]
    for name in names:
        draft.hold_rows(name, pixels=pixels.get(name, 0))
    return draft


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
