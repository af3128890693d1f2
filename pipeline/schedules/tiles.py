"""Some rows of a tensor tile of columns by tile of columns: what lies between them and the rows
that they are made of is made for each tile, as far as that needs it, and forgotten.

Where tiles, and rows that are not made together, need the same of it, that is computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Step
from pipeline.schedules.bounds import Box, Range, all_of, hull, needs
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
        found = {self.op.output: made}
        for op in reversed(self.operators):
            read = needs(op, self.graph.tensors, found[op.output])
            for name in dict.fromkeys(op.inputs):
                box, shape = read[name], self.graph.tensors[name].shape
                both = zip(found.get(name, box), box, shape, strict=True)
                found[name] = tuple(hull(a, b, extent) for a, b, extent in both)
        return found

    @cached_property
    def sides(self) -> dict[str, tuple[list[range], list[range]]]:
        """Of each tensor the rows that the tiles from each top on need, and the columns that the
        tiles beside each other do."""
        every = all_of(self.graph.tensors[self.op.output].shape)
        down = [self.boxes((self.tiles(top)[0][0], *every[1:])) for top in self.tops]
        across = [self.boxes((every[0], *tile[1:])) for tile in self.tiles(0)]
        names = (*self.outer, *self.inner, self.op.output)
        return {name: (_along(down, name, 0), _along(across, name, 1)) for name in names}

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
                name, place = f"{op.output}.{self.row}.{number}", self.run.places[op.output]
                part = draft.hold_part(op.output, boxes[op.output], name, taken.get(place, ""))
                taken[place] = name
                found.append(draft.compute(op, part, boxes[op.output]))
            for row in range(*tile[0].ends):  # each lies anywhere
                found.append(draft.compute(self.op, out, (Range(row, 1), *tile[1:])))
        return found

    def rows_read(self) -> dict[str, range]:
        """Of each tensor that rows are read of."""
        rows, *_ = self.run.tiles(self.row)[0]
        every = all_of(self.run.graph.tensors[self.op.output].shape)
        boxes = self.run.boxes((rows, *every[1:]))
        return {name: range(*boxes[name][0].ends) for name in self.run.outer}


def _along(tiles: Sequence[Mapping[str, Box]], name: str, axis: int) -> list[range]:
    return [range(*boxes[name][axis].ends) for boxes in tiles]


def tensors_apart(runs: Sequence[Run]) -> frozenset[str]:
    """Those whose rows are not made, or not read, whole."""
    return frozenset(name for run in runs for name in (*run.inner, *run.outer, run.op.output))
