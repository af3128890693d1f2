"""Which row is made when: on demand, depth first, never twice.

A row is made when a row that needs it is made: no earlier, so that nothing waits in memory for
long. What adds up all rows of its input, such as a global mean, takes them one by one as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.schedules.bounds import Range, all_of, needs
from pipeline.schedules.rows import Arrive, RowStep, rows_of


def on_demand(
    graph: Graph,
    operators: Sequence[Operator],
    present: Iterable[str],
    target: str,
    streamed: str = "",
) -> tuple[RowStep | Arrive, ...]:
    """The rows of ``target``, made by ``operators`` from tensors that are ``present`` whole, and
    from ``streamed``, whose rows come in one after the other."""
    return _Demand(graph, operators, present, streamed).run(target)


class _Demand:
    def __init__(
        self, graph: Graph, operators: Sequence[Operator], present: Iterable[str], streamed: str
    ) -> None:
        self.graph, self.makers = graph, {op.output: op for op in operators}
        self.streamed, self.arrived = streamed, 0
        self.present, self.done = frozenset(present), set[tuple[str, int]]()
        self.steps: list[RowStep | Arrive] = []

    def run(self, target: str) -> tuple[RowStep | Arrive, ...]:
        """Without recursion: networks are deeper than Python's stack."""
        pending = [self._want(target, range(rows_of(self.graph, target)))]
        while pending:
            wanted = next(pending[-1], None)
            if wanted is None:
                pending.pop()
            else:
                pending.append(self._want(*wanted))
        return tuple(self.steps)

    def _want(self, tensor: str, rows: Iterable[int]) -> Iterator[tuple[str, Iterable[int]]]:
        """What has to be wanted first, then the rows."""
        if tensor in self.present:
            return
        if tensor == self.streamed:
            until = max(rows, default=-1) + 1
            self.steps += map(Arrive, range(self.arrived, until))
            self.arrived = max(self.arrived, until)
            return
        op = self.makers[tensor]
        for row in rows:
            if (tensor, row) in self.done:
                continue
            self.done.add((tensor, row))
            if adds_rows(op, self.graph):
                yield from self._summed(op)
                continue
            yield from self._read(op, row).items()
            self.steps.append(RowStep("make", op, row))

    def _summed(self, op: Operator) -> Iterator[tuple[str, Iterable[int]]]:
        self.steps.append(RowStep("open", op))
        for row in range(rows_of(self.graph, op.inputs[0])):
            yield op.inputs[0], (row,)
            self.steps.append(RowStep("add", op, row))
        self.steps.append(RowStep("close", op))

    def _read(self, op: Operator, row: int) -> dict[str, range]:
        """Rows of each input that row ``row`` needs."""
        shape = self.graph.tensors[op.output].shape
        made = (Range(row, 1), *all_of(shape[1:])) if len(shape) == 3 else all_of(shape)
        found: dict[str, range] = {}
        for name, box in needs(op, self.graph.tensors, made).items():
            if name not in op.inputs:
                continue
            low, size = box[0]
            assert isinstance(low, int), "rows are numbers here"
            image = len(box) == 3
            found[name] = range(low, low + size) if image else range(1)
        return found


def adds_rows(op: Operator, graph: Graph) -> bool:
    """It adds up all rows of its one input, of which there are several."""
    height = rows_of(graph, op.inputs[0])
    operand = next(o for o in op.reads(graph.tensors) if o.tensor == op.inputs[0])
    return (
        op.combine == "add"
        and len(op.inputs) == 1
        and height > 1
        and rows_of(graph, op.output) == 1
        and operand.windows[0].count >= height
        and operand.windows[0].offset == 0
    )
