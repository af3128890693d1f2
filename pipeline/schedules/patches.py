"""Patches: boxes of an image that are computed through several layers, one after the other. What a
patch needs of the layers inside is computed for it alone; its halo, which its neighbours need,
too, is computed again. Where patches slide, columns of it are kept for the next one beside: then
only rows between strips are computed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from math import prod

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Buffer, Rows, Step
from pipeline.schedules.bounds import Box, Needs, Range, hull
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class Run:
    """Operators one after the other, of which each reads what is made before it, or other images;
    nobody else reads what they make, but for the last one.

    Attributes:
        rows, columns: of a patch of the result.
        slides: columns that patches beside each other need are kept.
    """

    graph: Graph = field(repr=False, compare=False)
    operators: tuple[Operator, ...]
    rows: int
    columns: int
    slides: bool = False

    @property
    def op(self) -> Operator:
        """Return the operator that makes the result."""
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
        """The first row of each patch, of those beside each other once."""
        return range(0, self.graph.tensors[self.op.output].shape[0], self.rows)

    @property
    def each(self) -> list[Patches]:
        """Return the steps that make its rows."""
        return [Patches(self, top) for top in self.tops]

    def patches(self, top: int) -> list[Box]:
        """Cut the result into patches, those that begin at row ``top``."""
        height, width, channels = self.graph.tensors[self.op.output].shape
        rows = Range(top, self.rows).clipped(height)
        wide = (Range(low, self.columns).clipped(width) for low in range(0, width, self.columns))
        return [(rows, columns, Range(0, channels)) for columns in wide]

    def boxes(self, made: Box) -> dict[str, Box]:
        """Find what the box ``made`` of the result needs of each tensor in the run, and of those
        that it reads; ``made`` itself is included."""
        found = {self.op.output: made}
        for op in reversed(self.operators):
            needed = self._needs[op.output](found[op.output])
            for name in dict.fromkeys(op.inputs):
                box, shape = needed[name], self.graph.tensors[name].shape
                found[name] = tuple(map(hull, found.get(name, box), box, shape))
        return found

    @cached_property
    def _needs(self) -> dict[str, Needs]:
        return {op.output: Needs(op, self.graph.tensors) for op in self.operators}

    @cached_property
    def sides(self) -> dict[str, tuple[list[range], list[range]]]:
        """Find the rows of each tensor that the patches from each top on need, and the columns that
        patches beside each other need."""
        down = [self.boxes(self.patches(top)[0]) for top in self.tops]
        across = [self.boxes(patch) for patch in self.patches(0)]
        return {
            name: (
                [range(*d[name][0].ends) for d in down],
                [range(*a[name][1].ends) for a in across],
            )
            for name in down[0]
        }

    @cached_property
    def fresh(self) -> dict[str, list[range]]:
        """Find the columns of each tensor that patches beside each other make."""
        found = {}
        for name, (_, across) in self.sides.items():
            ends = [0, *(side.stop for side in across)] if self.slides else [0] * len(across)
            pairs = zip(across, ends, strict=False)
            found[name] = [range(max(side.start, end), side.stop) for side, end in pairs]
        return found

    @cached_property
    def kept(self) -> dict[str, int]:
        """Map tensors inside, of which columns are kept for the next patch, to how many a patch
        needs at most."""
        across = {name: self.sides[name][1] for name in self.inner}
        return {n: max(map(len, each)) for n, each in across.items() if self.fresh[n] != each}

    def _between(self, name: str) -> int:
        """Columns of a tensor inside that are kept from one patch to the next."""
        fresh, (_, across) = self.fresh[name], self.sides[name]
        return max(len(each) - len(new) for each, new in zip(across, fresh, strict=True))

    @cached_property
    def held(self) -> int:
        """Nibbles that the largest patch has of the layers inside at most."""
        last = {name: n for n, op in enumerate(self.operators) for name in op.inputs}
        live = [0] * len(self.operators)
        for made, name in enumerate(self.inner):
            down, across = self.sides[name]
            tensor = self.graph.tensors[name]
            column = max(map(len, down)) * tensor.shape[2] * tensor.dtype.bits // 4
            for n in range(len(live)):
                wide = made <= n <= last[name]
                live[n] += column * (max(map(len, across)) if wide else self._between(name))
        return max(live)

    @cached_property
    def again(self) -> int:
        """Multiply–accumulates that are repeated, less those that nothing needs."""
        found = 0
        for op in self.operators[:-1]:
            tensor, sides = self.graph.tensors[op.output], self.sides[op.output]
            across = self.fresh[op.output]
            made = prod(sum(map(len, side)) for side in (sides[0], across)) * tensor.shape[2]
            found += op.macs(self.graph.tensors) * (made - tensor.size) // tensor.size
        return found

    @property
    def calls(self) -> int:
        """Count the steps, about."""
        return len(self.operators) * len(self.tops) * len(self.patches(0))

    @property
    def reads(self) -> bool:
        """Check whether each patch of each operator reads something: none is wholly padding, and
        no slice leaves out all channels."""
        channels = (box[-1].size for box in self.boxes(self.patches(0)[0]).values())
        return all(channels) and all(map(len, chain(*chain(*self.sides.values()))))


@dataclass(frozen=True)
class Patches:
    """Those of ``run`` that begin at row ``row`` of its result."""

    run: Run
    row: int

    @property
    def op(self) -> Operator:
        return self.run.op

    def steps(self, draft: Draft) -> list[Step]:
        """The result lies whole, unless rows of it are held already."""
        name, found = self.op.output, list[Step]()
        out = draft.buffer(draft.home[name]) if name in draft.home else draft.hold(name)
        for number, patch in enumerate(self.run.patches(self.row)):
            boxes = self.run.boxes(patch)
            for op in self.run.operators[:-1]:
                rows, _, channels = boxes[op.output]
                part = self._part(draft, op.output, boxes[op.output], number)
                for low, stop in _pieces(self.run.fresh[op.output][number], part.wrap[1]):
                    made = rows, Range(low, stop - low), channels
                    found.append(draft.compute(op, part, made))
            apart = isinstance(out.map, Rows)
            down = [Range(row, 1) for row in range(*patch[0].ends)] if apart else patch[:1]
            found += (draft.compute(self.op, out, (each, *patch[1:])) for each in down)
        return found

    def _part(self, draft: Draft, name: str, box: Box, number: int) -> Buffer:
        """Find what patch ``number`` has of a tensor inside, or, of kept columns, all patches."""
        columns = self.run.kept.get(name, 0)
        if not columns:
            return draft.hold_part(name, box, f"{self.row}.{number}")
        if number:
            return draft.buffer(draft.home[name])
        every = box[0], Range(0, self.run.graph.tensors[name].shape[1]), box[2]
        return draft.hold_part(name, every, f"{self.row}", columns=columns)


def _pieces(columns: range, ring: int) -> Iterator[tuple[int, int]]:
    """Cut ``columns`` where they would go around a ring."""
    ends = range(columns.start - columns.start % ring + ring, columns.stop, ring) if ring else ()
    return pairwise((columns.start, *ends, columns.stop) if columns else ())
