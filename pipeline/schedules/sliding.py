"""Row by row through a window that slides along time: of every tensor the rows that are still read
lie side by side, in one place, and move down as new ones come.

So what is computed for a window of rows stays for the next one, and from row to row every step is
at the same addresses: kernels need neither rings nor tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.concat import Concat
from pipeline.plan.vocabulary import Buffer, Step
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.bounds import Range, all_of, needs
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
        height: of each tensor the most rows from the first that is still read to a new one.
    """

    made: tuple[Made, ...]
    read: dict[Made, int]
    height: dict[str, int]

    @classmethod
    def of(cls, graph: Graph, operators: Sequence[Operator], start: str) -> Self:
        """``start``: the tensor that comes in, every row in order."""
        producers = {op.output: op for op in operators}
        turns = {name: turn for turn, name in enumerate((start, *producers))}
        found, read = dict[Made, int](), dict[Made, int]()

        def make(each: Made) -> None:
            if each in found:
                return
            if each.tensor == start:
                if each.row:
                    make(Made(start, each.row - 1))
                found[each] = read[each] = len(found)
                return
            op = producers[each.tensor]
            rows = reads(
                RowStep("make", op, each.row), graph, lambda op, box: needs(op, graph.tensors, box)
            )
            names = list(rows)
            if op.element_wise:
                # the longer branch first: of what both read it needs the earlier rows
                names.sort(key=lambda name: -turns[name])
            given = [Made(name, row) for name in names for row in rows[name]]
            for other in given:
                make(other)
            found[each] = len(found)
            read.update(dict.fromkeys((*given, each), found[each]))

        for row in range(rows_of(graph, graph.output)):
            make(Made(graph.output, row))
        order = cls(tuple(found), read, {})
        for number, (name, row) in enumerate(order.made):
            tall = row - order.first(name, row, number) + 1
            order.height[name] = max(tall, order.height.get(name, 0))
        return order

    def first(self, tensor: str, row: int, number: int) -> int:
        """The first row up to ``row`` that row ``number``, or one after it, is made of."""
        below = (each for each in range(row) if self.read.get(Made(tensor, each), -1) >= number)
        return next(below, row)


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
        base, made, found = dict[str, int](), set[tuple[str, int]](), list[Step]()
        for name in (start, *producers):
            whole = name == graph.output or (name == start and not self.given.streams)
            base[name], least = 0, order.height.get(name, 1)
            order.height[name] = rows_of(graph, name) if whole else least
            self._hold(draft, name, 0, order.height[name])
        for number, (name, row) in enumerate(order.made):
            if name == start and not self.given.streams:
                continue
            if row >= base[name] + order.height[name]:
                first = order.first(name, row, number)
                base[name] = min(first, rows_of(graph, name) - order.height[name])
                before = draft.buffer(draft.home[name])
                after = self._hold(draft, name, base[name], order.height[name])
                kept = [each for each in range(first, row) if (name, each) in made]
                found += _kept(draft, before, after, kept)
            made.add((name, row))
            out, box = draft.buffer(draft.home[name]), row_box(graph, name, row)
            came = self.given.taken(draft, out, box) if name == start else []
            found += came or [draft.compute(producers[name], out, box)]
        return found

    def _hold(self, draft: Draft, name: str, low: int, height: int) -> Buffer:
        """``height`` rows from row ``low`` on, where those before lay."""
        if rows_of(draft.graph, name) == height:
            return draft.hold(name)
        before = draft.home.get(name, "") if low else ""
        box = (Range(low, height), *all_of(draft.graph.tensors[name].shape[1:]))
        return draft.hold_part(name, box, f"{low}", before)


def _kept(draft: Draft, before: Buffer, after: Buffer, rows: Sequence[int]) -> Iterator[Step]:
    """Moves of ``rows``, those that follow each other together."""
    whole, begins = all_of(before.shape[1:]), [row for row in rows if row - 1 not in rows]
    for begin, stop in pairwise([*begins, before.shape[0]]):
        box = (Range(begin, sum(begin <= row < stop for row in rows)), *whole)
        yield draft.move(before, after, box)


def kept_bytes(graph: Graph) -> float:
    """What stays from one of neighbouring windows to the next: the rows that both read, when the
    first is done. Of windows with ends of their own all rows that the next one reads."""
    order, last = Order.of(graph, needed(graph), graph.input), graph.producer(graph.output)
    output = last.inputs[0] if isinstance(last, Concat) else graph.output
    end = order.made.index(Made(output, 0))
    kept = (e.tensor for e in order.made[:end] if order.read[e] > end and e.tensor != output)
    return sum(graph.tensors[name].bytes / rows_of(graph, name) for name in kept)
