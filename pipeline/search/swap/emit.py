"""What the tasks of a layer's tiles move and compute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor
from pipeline.schedules.bounds import Range as Run
from pipeline.schedules.bounds import added, all_of, needs
from pipeline.schedules.swapped import Act, Window
from pipeline.schedules.swapped import Kind as ActKind
from pipeline.search.swap.algorithm1 import Chosen
from pipeline.search.swap.cuts import Cut, Range, sums

Ranges = tuple[Range, ...]
"""From where to where along each axis."""


def volume(box: Ranges) -> int:
    return prod(max(0, stop - start) for start, stop in box)


def longest(ranges: Iterable[Range]) -> int:
    return max((stop - start for start, stop in ranges), default=0)


class Pools(NamedTuple):
    """Numbers of buffers; they lie in memory in this order."""

    buffer_bytes: int
    input: int
    weight: int
    output: int


class Piece(NamedTuple):
    """Weights of a tile in one window: ``box`` of them, for output channels ``made``; ``partial``:
    only a part of what these need, so that sums are kept."""

    window: Window
    made: Range
    box: Ranges
    partial: bool


@dataclass
class Emitter:
    """One layer: its windows, and the acts of its tasks."""

    cut: Cut
    graph: Graph
    pools: Pools
    windows: dict[str, Window] = field(default_factory=dict)

    def __post_init__(self) -> None:
        layer, cut, tensors = self.cut.tiling.layer, self.cut, self.graph.tensors
        self.layer, self.op = layer, self.graph.operator(layer.name)
        self.parted = len(cut.parts) > 1 and not layer.channelwise
        self.known: dict[tuple[int, int], tuple[Piece, ...]] = {}
        room, inputs, weights, outputs = self.pools
        depth = longest(cut.parts)
        source, target = tensors[layer.source], tensors[layer.target]
        sides = cut.window if layer.windows else source.shape[:-1]
        self.add("in", source, 0, (*sides, depth), 8, inputs)
        base = (inputs + weights) * room
        channels = depth if layer.channelwise else layer.channels
        held = [longest(cut.rows), longest(cut.columns), channels]
        self.add("out", target, base, self.of(held), 8, outputs)
        if number := sums(cut):
            above = 0 if self.parted else -(-prod(held) // 4) * 4
            if above + 4 * number > room:
                raise ThimbleError(
                    f"{layer.name}: {4 * number} B of sums don't fit beside an output tile; try "
                    f"another strategy.buffer_bytes than {room}"
                )
            if not self.parted:
                held[2] = longest(tile.shared for tile in cut.weights)
            self.add("sums", target, base + above, self.of(held), 32, outputs)
        self.add_weights(inputs * room, depth)

    def add_weights(self, base: int, depth: int) -> None:
        layer, cut, copies = self.layer, self.cut, self.pools.weight
        if not cut.weights:
            return
        weight = self.graph.tensors[layer.weight]
        inner = weight.shape[1:-1]
        last = depth if self.parted else weight.shape[-1]
        for period in {tile.period for tile in cut.weights}:
            tiles = [tile for tile in cut.weights if tile.period == period]
            rows, high = longest(t.rows for t in tiles), longest(t.shared for t in tiles)
            wide = longest(tile.columns for tile in tiles)
            for kind, sizes, start in (
                ("rows", (rows, *inner, last), base),
                ("shared", (high, *inner, wide), base + rows * prod(inner) * last),
            ):
                if all(sizes):
                    self.add(f"{kind}{period or ''}", weight, start, sizes, 8, copies)

    def add(
        self, kind: str, tensor: Tensor, base: int, sizes: Sequence[int], bits: int, copies: int
    ) -> None:
        name, room = self.graph.beside(self.layer.name, kind), self.pools.buffer_bytes
        self.windows[kind] = Window(name, tensor, base, tuple(sizes), bits, copies, room)

    def of(self, box: list[int]) -> list[int]:
        """(rows, columns, channels) as the target has them: a dense layer has channels only."""
        return box if self.layer.windows else box[2:]

    # --- boxes

    def read(self, task: Chosen) -> Ranges:
        """Of the source: the input tile."""
        part = self.cut.parts[task.part]
        if self.layer.windows is None:
            return (*((0, extent) for extent in self.layer.source_shape[:-1]), part)
        return (*self.cut.read(task.row, task.column), part)

    def made(self, task: Chosen, channels: Range) -> Ranges:
        """Of the target."""
        if self.layer.windows is None:
            return (channels,)
        return self.cut.rows[task.row], self.cut.columns[task.column], channels

    def channels(self, task: Chosen, rows: Range) -> Range:
        """Of output channels ``rows`` those that the tile makes."""
        if not self.layer.channelwise:
            return rows
        low, high = self.cut.parts[task.part]
        return max(low, rows[0]), max(low, rows[0], min(high, rows[1]))

    def weights(self, task: Chosen) -> tuple[Piece, ...]:
        """What the tile has whole (or the input part's share of it), and what it shares."""
        key = task.task.weight, task.part if self.parted else 0
        if key not in self.known:
            self.known[key] = tuple(self._weights(*key))
        return self.known[key]

    def _weights(self, number: int, part: int) -> Iterator[Piece]:
        tile = self.cut.weights[number]
        kind = tile.period or ""
        start, end = self.cut.parts[part] if self.parted else (0, self.layer.source_shape[-1])
        some = Run(start, end - start) if self.parted else None
        if volume((tile.rows,)):
            yield self._piece(f"rows{kind}", tile.rows, some)
        low, high = (min(start + column, end) for column in tile.columns)
        if volume((tile.shared, (low, high))):
            yield self._piece(f"shared{kind}", tile.shared, Run(low, high - low))

    def _piece(self, kind: str, made: Range, some: Run | None) -> Piece:
        """What output channels ``made`` need; ``some``: of the last axis of each operand."""
        tensors, shape = self.graph.tensors, self.graph.tensors[self.layer.target].shape
        box = (*all_of(shape[:-1]), Run(made[0], made[1] - made[0]))
        read = added(self.op, tensors, box, some) if some else needs(self.op, tensors, box)
        ends = tuple(each.ends for each in read[self.layer.weight])
        return Piece(self.windows[kind], made, ends, some is not None)

    # --- tasks

    def last(self, task: Chosen) -> bool:
        """The output tile is complete after this input tile."""
        return not self.parted or task.part == len(self.cut.parts) - 1

    def all_channels(self, task: Chosen) -> Range:
        return self.channels(task, (0, self.layer.channels))

    def size(self, task: Chosen) -> int:
        """Bytes that an IO task moves."""
        if task.task.kind == "input":
            return volume(self.read(task))
        if task.task.kind == "weight":
            return sum(volume(piece.box) for piece in self.weights(task))
        return volume(self.made(task, self.all_channels(task))) if self.last(task) else 0

    def moves(self, task: Chosen) -> Iterator[Act]:
        """Of an IO task."""
        frame = task.task.frame
        if task.task.kind == "input":
            held = self.windows["in"]
            yield Act("load", held.name, task.input, held.box(self.read(task)), frame)
        elif task.task.kind == "weight":
            for held, _, box, _ in self.weights(task):
                yield Act("load", held.name, task.weight, held.box(box), frame)
        elif self.last(task):
            held = self.windows["out"]
            box = self.made(task, self.all_channels(task))
            yield Act("store", held.name, task.output, held.box(box), frame)

    def computes(self, task: Chosen) -> Iterator[Act]:
        """Of a compute task. Where input tiles are parts of the source's channels, all of it is in
        sums, from the first part to the last."""
        if not self.cut.weights:
            yield self._act("make", "out", task, self.all_channels(task))
            return
        first = last = False
        if self.parted:
            first = task.part == task.task.weight == 0
            last = self.last(task) and task.task.weight == len(self.cut.weights) - 1
        if first:
            yield self._act("clear", "sums", task, (0, self.layer.channels))
        tile = self.cut.weights[task.task.weight]
        for piece in self.weights(task):
            made = self.channels(task, piece.made)
            if not volume((made,)):
                continue
            if not piece.partial:
                yield self._act("make", "out", task, made, piece)
                continue
            if tile.opens and not self.parted:
                yield self._act("clear", "sums", task, made)
            yield self._act("add", "sums", task, made, piece)
            if tile.closes and not self.parted:
                yield self._act("finish", "out", task, made)
        if last:
            yield self._act("finish", "out", task, (0, self.layer.channels))

    def _act(
        self, kind: ActKind, window: str, task: Chosen, made: Range, piece: Piece | None = None
    ) -> Act:
        held, given = self.windows[window], list[tuple[str, int]]()
        if kind in ("make", "add"):
            given.append((self.windows["in"].name, task.input))
        if kind == "finish":
            given.append((self.windows["sums"].name, task.output))
        some = None
        if piece:
            given.append((piece.window.name, task.weight))
            some = piece.window.box(piece.box)[-1] if piece.partial else None
        box, frame = held.box(self.made(task, made)), task.task.frame
        return Act(kind, held.name, task.output, box, frame, self.layer.name, tuple(given), some)
