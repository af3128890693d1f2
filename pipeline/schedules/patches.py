"""The first layers of a network patch by patch: what patches share is computed again for each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Lin, Loop, Step, value
from pipeline.schedules.bounds import Box, Range
from pipeline.schedules.draft import Draft

ROW, COLUMN = "patch_row", "patch_column"
VARIABLES = (ROW, COLUMN)


@dataclass(frozen=True)
class Patches:
    """``operators`` make ``end`` from ``start``, ``grid`` patches one after the other; ``tiles``
    are what a patch needs of every tensor in it, both ends included.

    ``apart``: each patch has steps of its own instead of a round of two loops, and its tiles begin
    where they lie, not where a ring turns: so kernels for whole images make them.
    """

    start: str
    end: str
    operators: tuple[Operator, ...]
    grid: tuple[int, int]
    tiles: dict[str, Box]
    apart: bool = False

    def steps(self, draft: Draft) -> list[Step]:
        if self.apart:
            return self._each(draft)
        body: list[Step] = []
        for op in self.operators:
            name = op.output
            if name == self.end:
                out = draft.hold(name)
            else:
                sizes = (*self.held(draft.graph, name), draft.graph.tensors[name].shape[2])
                out = draft.hold(name, sizes, "tile", within=COLUMN)
            body.append(draft.compute(op, out, self.tiles[name]))
        rows, columns = self.grid
        return [Loop(ROW, rows, (Loop(COLUMN, columns, tuple(body)),))]

    def _each(self, draft: Draft) -> list[Step]:
        found = list[Step]()
        whole = draft.hold(self.end)
        for patch in product(*map(range, self.grid)):
            env = dict(zip(VARIABLES, patch, strict=True))
            for op in self.operators:
                box = _box(self.tiles[op.output], env, draft.graph.tensors[op.output].shape)
                out = whole
                if op.output != self.end:
                    out = draft.hold_part(op.output, box, f"{patch[0]}.{patch[1]}")
                found.append(draft.compute(op, out, box))
        draft.home[self.end] = whole.name
        return found

    def held(self, graph: Graph, tensor: str) -> tuple[int, int]:
        """Rows and columns of the largest tile of ``tensor``."""
        rows, columns = (max(self._extents(graph, tensor, axis)) for axis in (0, 1))
        return rows, columns

    def reads(self, graph: Graph) -> bool:
        """Whether each patch of each operator reads something: none lies wholly in the padding,
        where a plan has no place to begin."""
        return all(
            read or not made
            for op in self.operators
            for name in op.inputs
            for axis in (0, 1)
            for made, read in zip(
                self._extents(graph, op.output, axis), self._extents(graph, name, axis), strict=True
            )
        )

    def macs(self, graph: Graph) -> int:
        """Multiply-accumulates of all patches, those done again included."""
        total = 0
        for op in self.operators:
            target = graph.tensors[op.output]
            sides = [sum(self._extents(graph, op.output, axis)) for axis in (0, 1)]
            total += prod(sides) * target.shape[2] * op.macs(graph.tensors) // target.size
        return total

    def _extents(self, graph: Graph, tensor: str, axis: int) -> list[int]:
        """How many indices along ``axis`` each patch has of ``tensor``."""
        part, extent = self.tiles[tensor][axis], graph.tensors[tensor].shape[axis]
        return [clipped(part, {VARIABLES[axis]: patch}, extent) for patch in range(self.grid[axis])]


def _box(tile: Box, env: dict[str, int], shape: tuple[int, ...]) -> Box:
    """Of one patch."""
    sides = zip(tile, shape, strict=True)
    return tuple(Range(value(p.low, env), p.size).clipped(extent) for p, extent in sides)


def clipped(part: Range, env: dict[str, int], extent: int) -> int:
    """How many indices of an axis of ``extent`` are in ``part``."""
    low = value(part.low, env)
    return max(0, min(low + part.size, extent) - max(low, 0))


def tiled(variable: str, size: int) -> Range:
    """Patch n: ``size`` indices from n * ``size`` on."""
    return Range(Lin(0, ((variable, size),)), size)
