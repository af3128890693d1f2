"""Which operators run in patches: as little memory as so many repeated multiply–accumulates buy.

For a peak to aim at: the first stretches of operators from thin rows to thin rows, as many as it
takes, in small patches; then without some of them, and in larger ones, as long as the peak is met.
Where more work is left than may be repeated, the peak is too low: the lowest is found by halves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import needed
from pipeline.schedules.patches import Run
from pipeline.search.joint.cuts import Cuts
from pipeline.search.view.rows import Units, adds_rows, drafted

LONGEST = 8
"""Operators of a stretch."""

ROWS = (1, 2, 4)
ACROSS = (1, 2, 3, 4, 6, 8, 12, 18)
"""Rows of patches, and patches beside each other, that are tried."""

SHARE = 6
"""Of the peak without repeated work, the part that a run takes to begin with."""

MOST = 6
"""Stretches."""

LOWEST = 4
"""Peaks below such a part of the one without repeated work are not tried."""

CLOSE = 50
"""Peaks that are apart by less than such a part are one."""


class Way(NamedTuple):
    """Runs in order, and what their schedule holds at most."""

    runs: tuple[Run, ...]
    peak: int

    @property
    def again(self) -> int:
        return sum(run.again for run in self.runs)


def stretches(graph: Graph, operators: Sequence[Operator]) -> Iterator[tuple[int, int]]:
    """The numbers of the first and the last operator of each stretch of images through windows,
    of which nothing but the last image is read elsewhere."""
    readers: dict[str, list[int]] = {graph.output: [len(operators)]}
    for number, op in enumerate(operators):
        for name in op.inputs:
            readers.setdefault(name, []).append(number)
    able = [patchable(op, graph) for op in operators]
    for first in range(len(operators)):
        until = first
        for last in range(first + 1, min(first + LONGEST, len(operators))):
            if not (able[last - 1] and able[last]):
                break
            until = max(until, *readers[operators[last - 1].output])
            if until == last:
                yield first, last


def patchable(op: Operator, graph: Graph) -> bool:
    """Its output and all that it reads are images, of which a patch needs a part."""
    images = (op.output, *op.inputs)
    if adds_rows(op, graph) or any(len(graph.tensors[name].shape) != 3 for name in images):
        return False
    read = [each.windows[:2] for each in op.reads(graph.tensors) if each.tensor in images]
    return all(
        (down.axis, across.axis, down.divide, across.divide) == (0, 1, 1, 1)
        for down, across in read
    )


def patched(graph: Graph, hardware: Hardware, most: int) -> tuple[Run, ...]:
    """Runs that repeat up to ``most`` multiply–accumulates."""
    return _Search(graph, hardware, needed(graph), most).best().runs


@dataclass
class _Search:
    """``tried``: patches of stretches."""

    graph: Graph
    hardware: Hardware
    operators: Sequence[Operator]
    most: int
    tried: dict[tuple[str, str], list[Run]] = field(default_factory=dict)

    def best(self) -> Way:
        best = self.plain
        low = best.peak // LOWEST
        while best.peak - low > max(1, best.peak // CLOSE):
            limit = (low + best.peak) // 2
            start = next((way for way in self.starts if way.peak <= limit), None)
            found = self.less(start, limit) if start else None
            if found and found.again <= self.most:
                best = found
            else:
                low = limit
        return best

    @cached_property
    def draft(self) -> Draft:
        return drafted(self.graph, self.hardware, self.operators, {})

    @cached_property
    def plain(self) -> Way:
        found = self.way(())
        assert found is not None
        return found

    def way(self, runs: Sequence[Run], limit: int = 1 << 60) -> Way | None:
        """None where its peak is more than ``limit`` cells."""
        streamed = self.hardware.streams_input
        units = Units(
            self.graph, self.hardware, self.operators, streamed, runs=runs, draft=self.draft
        )
        peak, pieces = Cuts(units).least(limit, effort=0)
        return Way(tuple(runs), peak) if pieces else None

    @cached_property
    def starts(self) -> list[Way]:
        """The first stretch, the first two, and so on, each with the least work in patches that
        take so many cells, or in the smallest ones."""
        room, small = self.plain.peak // SHARE, list[Run]()
        for every in filter(None, map(self.sizes, self.parted())):
            small.append(next((run for run in every if self.room(run) <= room), every[-1]))
        ways = (self.way(small[:some], self.plain.peak - 1) for some in range(1, MOST + 1))
        return [way for way in ways if way is not None]

    def less(self, way: Way, limit: int) -> Way:
        """Without the runs, and in the largest patches, that the limit allows: where most work is
        repeated first."""
        for run in sorted(way.runs, key=lambda run: -run.again):
            at = way.runs.index(run)
            before, after = way.runs[:at], way.runs[at + 1 :]
            if found := self.way((*before, *after), limit):
                way = found
                continue
            cheaper = [each for each in self.sizes(run.operators) if each.again < run.again]
            low, high = 0, len(cheaper)
            while low < high:
                middle = (low + high) // 2
                if found := self.way((*before, cheaper[middle], *after), limit):
                    way, high = found, middle
                else:
                    low = middle + 1
        return way

    def parted(self) -> list[tuple[Operator, ...]]:
        """Stretches, such that rows between them, and between operators of none, have as few cells
        as possible. In each the windows of one operator overlap: work is repeated once, not more
        and more from the last patch to the first."""
        best: list[tuple[int, list[tuple[Operator, ...]]]] = [(0, [])]
        able = list(stretches(self.graph, self.operators))
        for number, op in enumerate(self.operators):
            tensor, ways = self.graph.tensors[op.output], [best[number]]
            for first in (first for first, last in able if last == number):
                part = tuple(self.operators[first : number + 1])
                if sum(overlapping(each, self.graph) for each in part) == 1:
                    ways.append((best[first][0], [*best[first][1], part]))
            total, parts = min(ways, key=lambda way: way[0])
            best.append((total + tensor.size * tensor.dtype.bits // tensor.shape[0], parts))
        return best[-1][1]

    def room(self, run: Run) -> int:
        """Cells of its patches, and of the rows that it needs and makes together."""
        total = run.held
        for name in (*run.outer, run.op.output):
            tensor = self.graph.tensors[name]
            rows = max(map(len, run.sides[name][0]))
            total += rows * tensor.size * tensor.dtype.bits // 4 // tensor.shape[0]
        return total

    def sizes(self, operators: tuple[Operator, ...]) -> list[Run]:
        """Of a stretch patches of all sizes, none worse than another in memory and work, the least
        work first."""
        key = operators[0].name, operators[-1].name
        if key not in self.tried:
            width = self.graph.tensors[operators[-1].output].shape[1]
            columns = sorted({-(-width // patches) for patches in ACROSS})
            every = [Run(self.graph, operators, rows, wide) for rows in ROWS for wide in columns]
            able = [(run.again, self.room(run), run) for run in every if run.reads]
            found, least = list[Run](), 1 << 60
            for _, room, run in sorted(able, key=lambda each: each[:2]):
                if room < least:
                    found.append(run)
                    least = room
            self.tried[key] = found
        return self.tried[key]


def overlapping(op: Operator, graph: Graph) -> bool:
    """Whether outputs beside each other, or below, read some of the same."""
    return any(
        (window.count - 1) * window.dilation + 1 > window.stride
        for operand in op.reads(graph.tensors)
        if operand.tensor in op.inputs
        for window in operand.windows[:2]
    )
