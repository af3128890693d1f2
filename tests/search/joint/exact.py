"""The least peak over all orders in which the rows of a small network can be made.

A state is which steps are done: each makes a row, lets one of the input in, or adds one to sums.
What lives follows from it: a row until all that read it are done; sums from the first row that is
added to the last, when the output takes their place. Of all ways from no step to all of them, the
one whose worst moment is the least (bottleneck shortest path). Shares nothing with the planner but
what kernels say about rows that are written over dying ones.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.hardware import Hardware
from pipeline.schedules.draft import Draft
from pipeline.schedules.rows import over_dying, saved

SUM_NIBBLES = 8

Row = tuple[str, int]
"""Row of a tensor; a vector is one."""


@dataclass
class Step:
    """
    Attributes:
        name: its output and the row of it, or, where it adds, that of the input.
        makes: a row, or what is added up once all ``others`` are done that add to it.
        reads: rows.
        shares: by the tensors it reads the nibbles that lie over a row of theirs that dies, less
            what is kept aside for that, ``aside``.
        before, others: masks of steps.
    """

    name: Row
    makes: Row
    reads: list[Row] = field(default_factory=list)
    shares: dict[str, int] = field(default_factory=dict)
    aside: int = 0
    before: int = 0
    others: int = 0


@dataclass
class Network:
    """
    Attributes:
        end: the steps that the output needs, as a mask.
        makers: of each row the steps that have to be done for it to be there, as a mask.
        readers: of each row the steps that read it, as a mask.
    """

    graph: Graph
    steps: list[Step] = field(default_factory=list)
    makers: dict[Row, int] = field(default_factory=dict)
    readers: dict[Row, int] = field(default_factory=dict)
    end: int = 0

    def given(self) -> int:
        """Nibbles before all steps."""
        return sum(self.size(row) for row, makers in self.makers.items() if not makers)

    def size(self, row: Row) -> int:
        of = self.graph.tensors[row[0]]
        return of.size * of.dtype.bits // 4 // rows_of(self.graph, row[0])

    def sums(self, step: Step) -> int:
        return SUM_NIBBLES * self.graph.tensors[step.makes[0]].size if step.others else 0

    def alive(self, row: Row, done: int) -> bool:
        """Check whether a row that is there is still needed."""
        return row[0] == self.graph.output or bool(self.readers.get(row, 0) & ~done)

    def live(self, done: int) -> int:
        """Nibbles between two steps."""
        there = (row for row, makers in self.makers.items() if not makers & ~done)
        open_sums = {
            step.makes: self.sums(step)
            for step in self.steps
            if step.others & done and step.others & ~done
        }
        rows = sum(self.size(row) for row in there if self.alive(row, done))
        return rows + sum(open_sums.values())

    def during(self, number: int, done: int, live: int) -> int:
        """Nibbles while a step is done."""
        step = self.steps[number]
        if step.others:  # the output lies over its sums
            return live + (0 if step.others & done else self.sums(step))
        dying = {row[0] for row in step.reads if not self.alive(row, done | 1 << number)}
        saves = max((step.shares.get(name, 0) for name in dying), default=0)
        return live + self.size(step.makes) - saves


def least_peak(network: Network, states: int) -> int | None:
    """Nibbles; None where more than ``states`` have to be looked at."""
    queue, seen = [(network.given(), 0)], set[int]()
    while queue and len(seen) < states:
        worst, done = heapq.heappop(queue)
        if done == network.end:
            return worst
        if done in seen:
            continue
        seen.add(done)
        live = network.live(done)
        for number, step in enumerate(network.steps):
            if (network.end & ~done) >> number & 1 and not step.before & ~done:
                cells = network.during(number, done, live)
                heapq.heappush(queue, (max(worst, cells), done | 1 << number))
    return None


def peak(network: Network, order: Sequence[Row]) -> int:
    """Nibbles at the worst moment of steps that are done in this order.

    Raises:
        AssertionError: one is done before another that it needs, or not all are done.
    """
    numbers = {step.name: number for number, step in enumerate(network.steps)}
    worst, done = network.given(), 0
    for name in order:
        number = numbers[name]
        assert not network.steps[number].before & ~done
        worst = max(worst, network.during(number, done, network.live(done)))
        done |= 1 << number
    assert done == network.end
    return worst


def network_of(graph: Graph, hardware: Hardware, streamed: bool) -> Network:
    """Steps in an order in which they can be done."""
    network = Network(graph)
    shares = _shares(graph, hardware)
    for row in range(rows_of(graph, graph.input)):
        network.makers[graph.input, row] = 1 << row if streamed else 0
        if streamed:
            before = 1 << row - 1 if row else 0
            name = graph.input, row
            network.steps.append(Step(name, name, before=before))
    for op in graph.operators:
        first = len(network.steps)
        if adds_up(graph, op):
            rows = rows_of(graph, op.inputs[0])
            every = (1 << rows) - 1 << first
            network.makers[op.output, 0] = every
            for row in range(rows):
                name, read = (op.output, row), [(op.inputs[0], row)]
                network.steps.append(Step(name, (op.output, 0), read, others=every))
        else:
            for row in range(rows_of(graph, op.output)):
                name, read = (op.output, row), rows_read(graph, op, row)
                network.makers[name] = 1 << len(network.steps)
                network.steps.append(Step(name, name, read, *shares[op.output]))
        for step in network.steps[first:]:
            for row in step.reads:
                step.before |= network.makers[row]
    _trace(network)
    return network


def _trace(network: Network) -> None:
    """Leave out what nobody needs: it is not done, and reads nothing."""
    graph = network.graph
    for row in range(rows_of(graph, graph.output)):
        network.end |= network.makers[graph.output, row]
    for number, step in reversed(list(enumerate(network.steps))):
        if network.end >> number & 1:
            network.end |= step.before
            for row in step.reads:
                network.readers[row] = network.readers.get(row, 0) | 1 << number


def rows_of(graph: Graph, tensor: str) -> int:
    shape = graph.tensors[tensor].shape
    return shape[0] if len(shape) == 3 else 1


def rows_read(graph: Graph, op: Operator, row: int) -> list[Row]:
    """List the rows that row ``row`` of the output is made of."""
    found = set()
    for operand in op.reads(graph.tensors):
        name, window = operand.tensor, operand.windows[0]
        if name not in op.inputs:
            continue
        if len(graph.tensors[name].shape) < 3:
            found.add((name, 0))
            continue
        first = window.offset + (row * window.stride if window.axis == 0 else 0)
        last = first + (window.count - 1) * window.dilation
        last = min(last, rows_of(graph, name) - 1)
        found |= {(name, each) for each in range(max(0, first), last + 1)}
    return sorted(found)


def adds_up(graph: Graph, op: Operator) -> bool:
    """Sums over all rows of the input are held, to which each is added as it comes."""
    if isinstance(op, Conv2d):
        return False
    height = rows_of(graph, op.inputs[0])
    every = op.combine == "add" and len(rows_read(graph, op, 0)) == height > 1
    return every and len(op.inputs) == 1 and rows_of(graph, op.output) == 1


def _shares(graph: Graph, hardware: Hardware) -> dict[str, tuple[dict[str, int], int]]:
    """By tensor the nibbles a row lies over a dying one, by its inputs, and what is kept aside."""
    draft = Draft(graph, hardware)
    for name in (graph.input, *(op.output for op in graph.operators)):
        (draft.hold_rows if rows_of(graph, name) > 1 else draft.hold)(name)
    found = {}
    for op in graph.operators:
        gaps = over_dying(draft, op, rows_of(graph, op.output) // 2)
        shares = {name: saved(graph, op, name, gap) for name, gap in gaps.items()}
        found[op.output] = shares, max((2 * gap.aside_bytes for gap in gaps.values()), default=0)
    return found
