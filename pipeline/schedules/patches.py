"""The first layers of a network patch by patch: what patches share is computed again for each."""

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
        body = list[Step]()
        for op in self.operators:
            name = op.output
            if name == self.end:
                out = draft.hold(name)
            else:
                held = (max(self._extents(draft.graph, name, axis)) for axis in (0, 1))
                sizes = (*held, draft.graph.tensors[name].shape[2])
                out = draft.hold(name, sizes, "tile", within=COLUMN)
            body.append(draft.compute(op, out, self.tiles[name]))
        rows, columns = self.grid
        return [Loop(ROW, rows, (Loop(COLUMN, columns, tuple(body)),))]

    def _each(self, draft: Draft) -> list[Step]:
        found, whole = list[Step](), draft.hold(self.end)
        for patch in product(*map(range, self.grid)):
            env = dict(zip(VARIABLES, patch, strict=True))
            for op in self.operators:
                sides = zip(
                    self.tiles[op.output], draft.graph.tensors[op.output].shape, strict=True
                )
                box = tuple(at(part, extent, env) for part, extent in sides)
                out = whole
                if op.output != self.end:
                    out = draft.hold_part(op.output, box, f"{patch[0]}.{patch[1]}")
                found.append(draft.compute(op, out, box))
        return found

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
        return [at(part, extent, {VARIABLES[axis]: n}).size for n in range(self.grid[axis])]


def at(part: Range, extent: int, env: dict[str, int]) -> Range:
    """``part`` in one pass of the loops, inside of an axis of ``extent``."""
    return Range(value(part.low, env), part.size).clipped(extent)


def tiled(variable: str, size: int) -> Range:
    """Patch n: ``size`` indices from n * ``size`` on."""
    return Range(Lin(0, ((variable, size),)), size)
