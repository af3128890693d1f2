"""Row by row through a window that slides along time: of every tensor the rows that are still read
lie side by side, in one place, and move down as new ones come.

So what is computed for a window of rows stays for the next one, and from row to row every step is
at the same addresses: kernels need neither rings nor tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple, Self

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.placing import Concat
from pipeline.plan.vocabulary import Buffer, Step
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.bounds import Needs, Range, all_of
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import needed
from pipeline.schedules.rows import RowStep, reads, row_box, rows_of


class Made(NamedTuple):
    """Row ``row`` of a tensor."""

    tensor: str
    row: int


@dataclass(frozen=True)
class Order:
    """
    Attributes:
        made: every row that is needed, once, each as late as the next row of the output allows.
        read: of each the number of the row that is made of it last.
    """

    made: tuple[Made, ...]
    read: dict[Made, int]

    @classmethod
    def of(cls, graph: Graph, operators: Sequence[Operator], start: str) -> Self:
        """``start``: the tensor that comes in, every row in order."""
        producers = {op.output: op for op in operators}
        turns = {name: turn for turn, name in enumerate((start, *producers))}
        found, read = dict[Made, int](), dict[Made, int]()

        def make(each: Made) -> None:
            if each in found:
                return
            given = [Made(start, each.row - 1)] * bool(each.row)
            if each.tensor != start:
                op = producers[each.tensor]
                step = RowStep("make", op, each.row)
                rows = reads(step, graph, lambda op, box: Needs(op, graph.tensors)(box))
                # the longer branch first: of what both read it needs the earlier rows
                names = sorted(rows, key=lambda name: -turns[name] * op.element_wise)
                given = [Made(name, row) for name in names for row in rows[name]]
            for other in given:
                make(other)
            found[each] = read[each] = len(found)
            if each.tensor != start:
                read.update(dict.fromkeys(given, found[each]))

        for row in range(rows_of(graph, graph.end)):
            make(Made(graph.end, row))
        return cls(tuple(found), read)

    def first(self, tensor: str, row: int, number: int) -> int:
        """The first row up to ``row`` that row ``number``, or one after it, is made of."""
        below = (each for each in range(row) if self.read.get(Made(tensor, each), -1) >= number)
        return next(below, row)

    @cached_property
    def height(self) -> dict[str, int]:
        """Find, for each tensor, the most rows from the first that is still read to a new one."""
        found = dict[str, int]()
        for number, (name, row) in enumerate(self.made):
            found[name] = max(found.get(name, 0), row - self.first(name, row, number) + 1)
        return found


@dataclass(frozen=True)
class Sliding:
    """
    Attributes:
        given: how the input comes in; without sums on the way.
        operators: all others.
    """

    given: Arriving
    operators: tuple[Operator, ...]

    def steps(self, draft: Draft) -> list[Step]:
        graph, start = draft.graph, self.given.start.name
        producers = {op.output: op for op in self.operators}
        order = Order.of(graph, self.operators, start)
        if self.given.streams:
            self.given.opened(draft)
        held, made, found = dict[str, Range](), set[tuple[str, int]](), list[Step]()
        for name in (start, *producers):
            whole = name == graph.end or (name == start and not self.given.streams)
            held[name] = Range(0, rows_of(graph, name) if whole else order.height.get(name, 1))
            _hold(draft, name, held[name])
        for number, (name, row) in enumerate(order.made):
            if name == start and not self.given.streams:
                continue
            if row >= held[name].ends[1]:
                first, size = order.first(name, row, number), held[name].size
                held[name] = Range(min(first, rows_of(graph, name) - size), size)
                before = draft.buffer(draft.home[name])
                after = _hold(draft, name, held[name], before.name * bool(held[name].low))
                kept = [each for each in range(first, row) if (name, each) in made]
                for _, together in groupby(enumerate(kept), lambda each: each[1] - each[0]):
                    rows = [each for _, each in together]
                    box = (Range(rows[0], len(rows)), *all_of(before.shape[1:]))
                    found.append(draft.move(before, after, box))
            made.add((name, row))
            out, box = draft.buffer(draft.home[name]), row_box(graph, name, row)
            came = self.given.taken(draft, out, box) if name == start else []
            found += came or [draft.compute(producers[name], out, box)]
        return found


def _hold(draft: Draft, name: str, rows: Range, over: str = "") -> Buffer:
    """``rows`` of a tensor, where those before lay."""
    shape = draft.graph.tensors[name].shape
    if rows_of(draft.graph, name) == rows.size:
        return draft.hold(name)
    return draft.hold_part(name, (rows, *all_of(shape[1:])), f"{rows.low}", over)


def kept_bytes(graph: Graph) -> float:
    """Sum the bytes that stay from one of neighbouring windows to the next: rows that both read,
    when the first is done. If windows have ends of their own, all rows that the next one reads."""
    order, last = Order.of(graph, needed(graph), graph.start), graph.producer(graph.end)
    output = last.inputs[0] if isinstance(last, Concat) else graph.end
    end = order.made.index(Made(output, 0))
    kept = (e.tensor for e in order.made[:end] if order.read[e] > end and e.tensor != output)
    return sum(graph.tensors[name].bytes / rows_of(graph, name) for name in kept)
