"""The part of a network that runs patch by patch, and what each patch needs of each tensor.

Seen from its end, where patches are apart, every tensor before it is needed in larger, overlapping
tiles: the halo, which is computed again for each patch (Lin et al., MCUNetV2, 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pipeline.graph.access import Window
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator

Grid = tuple[int, int]


@dataclass(frozen=True)
class Span:
    """Along one axis patch n needs ``low + n * step`` and the ``size - 1`` indices after it, as far
    as there are any."""

    low: int
    step: int
    size: int

    def clipped(self, patch: int, extent: int) -> int:
        """How many indices patch number ``patch`` has of an axis of ``extent``."""
        low = self.low + patch * self.step
        return max(0, min(low + self.size, extent) - max(low, 0))

    def before(self, window: Window) -> Span:
        """What it reads through ``window``."""
        size = (self.size - 1) * window.stride + (window.count - 1) * window.dilation + 1
        return Span(self.low * window.stride + window.offset, self.step * window.stride, size)

    def hull(self, other: Span) -> Span | None:
        """Both; None when they don't move together."""
        if self.step != other.step:
            return None
        low = min(self.low, other.low)
        high = max(self.low + self.size, other.low + other.size)
        return Span(low, self.step, high - low)


Tile = tuple[Span, Span]
"""Rows and columns; all channels."""


@dataclass(frozen=True)
class Stage:
    """``operators`` make ``end`` from ``start``, ``grid`` patches one after the other; ``tiles``
    are of every tensor in it, both ends included."""

    start: str
    end: str
    operators: tuple[Operator, ...]
    grid: Grid
    tiles: dict[str, Tile]

    def held(self, graph: Graph, tensor: str) -> tuple[int, int]:
        """Rows and columns of the largest tile of ``tensor``."""
        shape = graph.tensors[tensor].shape
        rows, columns = (
            max(span.clipped(patch, extent) for patch in range(patches))
            for span, extent, patches in zip(self.tiles[tensor], shape[:2], self.grid, strict=True)
        )
        return rows, columns

    def reads(self, graph: Graph) -> bool:
        """Whether each patch of each operator reads something: none lies wholly in the padding,
        where a plan has no place to begin."""
        pairs = ((op, name) for op in self.operators for name in op.inputs)
        return not any(
            made.clipped(patch, graph.tensors[op.output].shape[axis])
            and not read.clipped(patch, graph.tensors[name].shape[axis])
            for op, name in pairs
            for axis, (made, read) in enumerate(
                zip(self.tiles[op.output], self.tiles[name], strict=True)
            )
            for patch in range(self.grid[axis])
        )

    def macs(self, graph: Graph) -> int:
        """Multiply-accumulates of all patches, those done again included."""
        total = 0
        for op in self.operators:
            target = graph.tensors[op.output]
            sides = [
                sum(span.clipped(patch, extent) for patch in range(patches))
                for span, extent, patches in zip(
                    self.tiles[op.output], target.shape[:2], self.grid, strict=True
                )
            ]
            total += prod(sides) * target.shape[2] * op.macs(graph.tensors) // target.size
        return total


def stages(graph: Graph, start: str, operators: Sequence[Operator], grid: Grid) -> list[Stage]:
    """One for each tensor at which the part that runs in patches can end: an image of at least as
    many pixels a side as there are patches, through which everything passes."""
    found, before = list[Stage](), dict[str, set[str]]()
    for op in operators:
        before[op.output] = {op.output}.union(*(before.get(name, set()) for name in op.inputs))
    for op in operators:
        inside = [each for each in operators if each.output in before[op.output]]
        rest = [each for each in operators if each.output not in before[op.output]]
        hidden = (before[op.output] | {start}) - {op.output}
        if any(hidden & set(each.inputs) for each in rest):
            continue
        stage = _stage(graph, start, inside, grid)
        if stage is None:
            break  # what cannot be tiled is part of every longer stage, too
        if stage.reads(graph):
            found.append(stage)
    return found


def _stage(graph: Graph, start: str, operators: list[Operator], grid: Grid) -> Stage | None:
    end = operators[-1].output
    shape = graph.tensors[end].shape
    if len(shape) != 3 or shape[0] < grid[0] or shape[1] < grid[1]:
        return None
    sizes = [-(-extent // patches) for extent, patches in zip(shape[:2], grid, strict=True)]
    tiles: dict[str, Tile] = {end: (Span(0, sizes[0], sizes[0]), Span(0, sizes[1], sizes[1]))}
    number = (-(-shape[0] // sizes[0]), -(-shape[1] // sizes[1]))
    for op in reversed(operators):
        for operand in (o for term in op.terms(graph.tensors) for o in term.operands):
            if operand.tensor not in op.inputs:
                continue
            if [(each.axis, each.divide) for each in operand.windows[:2]] != [(0, 1), (1, 1)]:
                return None
            rows, columns = (
                span.before(window)
                for span, window in zip(tiles[op.output], operand.windows[:2], strict=True)
            )
            known = tiles.get(operand.tensor, (rows, columns))
            high, wide = known[0].hull(rows), known[1].hull(columns)
            if high is None or wide is None:
                return None
            tiles[operand.tensor] = high, wide
    return Stage(start, end, tuple(operators), number, tiles)
