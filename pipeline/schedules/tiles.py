"""Some rows of a tensor tile of columns by tile of columns: what lies between them and the rows
that they are made of is made for each tile, as far as that needs it, and forgotten.

Where tiles, and rows that are not made together, need the same of it, that is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from pipeline.graph.access import Window
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Step
from pipeline.schedules.bounds import Box, Range
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class Run:
    """Operators one after the other, of which each reads what is made before it, or rows of other
    images; nobody else reads what they make, but for the last one.

    Attributes:
        rows: of the result that are made together.
        columns: of a tile.
    """

    graph: Graph = field(repr=False, compare=False)
    operators: tuple[Operator, ...]
    rows: int
    columns: int

    @property
    def op(self) -> Operator:
        """That makes the result."""
        return self.operators[-1]

    @cached_property
    def inner(self) -> tuple[str, ...]:
        """Tensors that are never whole, nor any row of them."""
        return tuple(op.output for op in self.operators[:-1])

    @cached_property
    def outer(self) -> tuple[str, ...]:
        """Tensors that rows are read of."""
        read = dict.fromkeys(name for op in self.operators for name in op.inputs)
        return tuple(name for name in read if name not in self.inner)

    @cached_property
    def tops(self) -> range:
        """The first of the rows that are made together."""
        return range(0, self.graph.tensors[self.op.output].shape[0], self.rows)

    def tiles(self, top: int) -> list[Box]:
        """Of the rows from ``top`` on."""
        height, width, channels = self.graph.tensors[self.op.output].shape
        rows = Range(top, self.rows).clipped(height)
        wide = (Range(low, self.columns).clipped(width) for low in range(0, width, self.columns))
        return [(rows, columns, Range(0, channels)) for columns in wide]

    def boxes(self, made: Box) -> dict[str, Box]:
        """What the box ``made`` of the result needs of each tensor in the run, and of those that it
        reads; ``made`` itself."""
        sides = [self._along(axis, range(*made[axis].ends)) for axis in (0, 1)]
        return {
            name: (
                *(Range(side[name].start, len(side[name])) for side in sides),
                Range(0, self.graph.tensors[name].shape[2]),
            )
            for name in sides[0]
        }

    @cached_property
    def sides(self) -> dict[str, tuple[list[range], list[range]]]:
        """Of each tensor the rows that the tiles from each top on need, and the columns that the
        tiles beside each other do."""
        rows, columns = self.tops, self.tiles(0)
        down = [self._along(0, range(*self.tiles(top)[0][0].ends)) for top in rows]
        across = [self._along(1, range(*tile[1].ends)) for tile in columns]
        return {name: ([d[name] for d in down], [a[name] for a in across]) for name in down[0]}

    def _along(self, axis: int, made: range) -> dict[str, range]:
        """Indices along an axis that ``made`` of the result need, of each tensor."""
        found = {self.op.output: made}
        for output, name, windows in self._windows:
            window, out = windows[axis], found[output]
            low, stop = window.span(out.start, out.stop) if out else (0, 0)
            extent = self.graph.tensors[name].shape[axis]
            low = min(max(0, low), extent)
            read = range(low, max(low, min(stop, extent)))
            other = found.get(name, read)
            found[name] = range(min(read.start, other.start), max(read.stop, other.stop))
        return found

    @cached_property
    def _windows(self) -> list[tuple[str, str, tuple[Window, ...]]]:
        """Each image that is read, from the last operator on: for what, and how."""
        return [
            (op.output, operand.tensor, operand.windows)
            for op in reversed(self.operators)
            for operand in op.reads(self.graph.tensors)
            if operand.tensor in op.inputs
        ]

    @cached_property
    def places(self) -> dict[str, int]:
        """Of each inner tensor the number of the place that its parts lie in: none is taken while
        what lies in it is still read."""
        last = {name: n for n, op in enumerate(self.operators) for name in op.inputs}
        found, until = dict[str, int](), list[int]()
        for n, name in enumerate(self.inner):
            place = next((p for p, end in enumerate(until) if end < n), len(until))
            until[place : place + 1] = [last[name]]
            found[name] = place
        return found

    @cached_property
    def held(self) -> int:
        """Nibbles that all places take."""
        sizes = dict.fromkeys(self.places.values(), 0)
        for name, place in self.places.items():
            tensor, sides = self.graph.tensors[name], self.sides[name]
            part = (
                prod(max(map(len, side)) for side in sides)
                * tensor.shape[2]
                * tensor.dtype.bits
                // 4
            )
            sizes[place] = max(sizes[place], part)
        return sum(sizes.values())

    @cached_property
    def again(self) -> int:
        """Multiply–accumulates that are repeated."""
        found = 0
        for op in self.operators[:-1]:
            tensor, sides = self.graph.tensors[op.output], self.sides[op.output]
            made = prod(sum(map(len, side)) for side in sides)
            once = prod(len(set().union(*side)) for side in sides)
            found += op.macs(self.graph.tensors) * (made - once) * tensor.shape[2] // tensor.size
        return found

    @property
    def reads(self) -> bool:
        """Whether each tile of each operator reads something: none lies wholly in the padding."""
        return all(all(map(len, side)) for sides in self.sides.values() for side in sides)


@dataclass(frozen=True)
class Tiles:
    """The rows of the result of ``run`` from ``row`` on."""

    run: Run
    row: int

    @property
    def op(self) -> Operator:
        return self.run.op

    def steps(self, draft: Draft) -> list[Step]:
        """The result, or its rows, are held already."""
        out, found = draft.buffer(draft.home[self.op.output]), list[Step]()
        taken = dict[int, str]()
        for number, tile in enumerate(self.run.tiles(self.row)):
            boxes = self.run.boxes(tile)
            for op in self.run.operators[:-1]:
                place, kind = self.run.places[op.output], f"{self.row}.{number}"
                part = draft.hold_part(op.output, boxes[op.output], kind, taken.get(place, ""))
                taken[place] = part.name
                found.append(draft.compute(op, part, boxes[op.output]))
            for row in range(*tile[0].ends):  # each lies anywhere
                found.append(draft.compute(self.op, out, (Range(row, 1), *tile[1:])))
        return found

    def rows_read(self) -> dict[str, range]:
        """Of each tensor that rows are read of."""
        number = self.row // self.run.rows
        return {name: self.run.sides[name][0][number] for name in self.run.outer}


def tensors_apart(runs: Sequence[Run]) -> frozenset[str]:
    """Those whose rows are not made, or not read, whole."""
    return frozenset(name for run in runs for name in (*run.inner, *run.outer, run.op.output))
