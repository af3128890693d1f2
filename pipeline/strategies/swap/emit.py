"""What the tasks of a layer's tiles move and compute, as steps of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box
from pipeline.plan.vocabulary import Buffer, Clear, Compute, Finish, Move, Slice, Step
from pipeline.strategies.swap.algorithm1 import Chosen, Kind
from pipeline.strategies.swap.cuts import Cut, Range, sums
from pipeline.strategies.swap.places import window


def piece(buffer: str, box: Box, copy: int = 0) -> Slice:
    return Slice(buffer, tuple(low for low, _ in box), tuple(high - low for low, high in box), copy)


def volume(box: Box) -> int:
    return prod(max(0, stop - start) for start, stop in box)


def longest(ranges: Iterator[Range]) -> int:
    return max((stop - start for start, stop in ranges), default=0)


class Pools(NamedTuple):
    """Numbers of buffers; they lie in SRAM in this order."""

    buffer_bytes: int
    input: int
    weight: int
    output: int


@dataclass
class Emitter:
    """One layer: its buffers in SRAM, and the steps of its tasks."""

    cut: Cut
    graph: Graph
    pools: Pools
    buffers: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        layer, cut, tensors = self.cut.tiling.layer, self.cut, self.graph.tensors
        self.layer = layer
        self.parted = len(cut.parts) > 1 and not layer.channelwise
        room, inputs, weights, outputs = self.pools
        depth = longest(iter(cut.parts))
        source, target = tensors[layer.source], tensors[layer.target]
        sides = cut.window if layer.windows else source.shape[:-1]
        self.buffers.append(window(self.name("in"), source, 0, (*sides, depth), 8, inputs, room))
        base = (inputs + weights) * room
        channels = depth if layer.channelwise else layer.channels
        held = [longest(iter(cut.rows)), longest(iter(cut.columns)), channels]
        self.buffers.append(window(self.name("out"), target, base, self.of(held), 8, outputs, room))
        if number := sums(cut):
            above = 0 if self.parted else -(-prod(held) // 4) * 4
            if above + 4 * number > room:
                raise ThimbleError(
                    f"{layer.name}: {4 * number} B of sums don't fit beside an output tile; try "
                    f"another strategy.buffer_bytes than {room}"
                )
            if not self.parted:
                held[2] = longest(tile.shared for tile in cut.weights)
            sizes = self.of(held)
            self.buffers.append(
                window(self.name("sums"), target, base + above, sizes, 32, outputs, room)
            )
        self.add_weights(inputs * room, depth)

    def add_weights(self, base: int, depth: int) -> None:
        layer, cut, room, copies = self.layer, self.cut, self.pools.buffer_bytes, self.pools.weight
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
                    name = self.name(kind, period)
                    self.buffers.append(window(name, weight, start, sizes, 8, copies, room))

    def name(self, kind: str, period: int = 0) -> str:
        return f"{self.layer.name}.{kind}{period or ''}"

    def of(self, box: list[int]) -> list[int]:
        """(rows, columns, channels) as the target has them: a dense layer has channels only."""
        return box if self.layer.windows else box[2:]

    # --- boxes

    def read(self, task: Chosen) -> Box:
        """Of the source: the input tile."""
        part = self.cut.parts[task.part]
        if self.layer.windows is None:
            return (*((0, extent) for extent in self.layer.source_shape[:-1]), part)
        return (*self.cut.read(task.row, task.column), part)

    def made(self, task: Chosen, channels: Range) -> Box:
        if self.layer.windows is None:
            return (channels,)
        return self.cut.rows[task.row], self.cut.columns[task.column], channels

    def channels(self, task: Chosen, rows: Range) -> Range:
        """Of output channels ``rows`` those that the tile makes."""
        if not self.layer.channelwise:
            return rows
        low, high = self.cut.parts[task.part]
        return max(low, rows[0]), max(low, rows[0], min(high, rows[1]))

    def rows(self, task: Chosen) -> Box:
        """Of the weights: the rows that the tile has whole (or the input part's share of them)."""
        shape = self.graph.tensors[self.layer.weight].shape
        tile = self.cut.weights[task.task.weight]
        last = self.cut.parts[task.part] if self.parted else (0, shape[-1])
        return (tile.rows, *((0, extent) for extent in shape[1:-1]), last)

    def shared(self, task: Chosen) -> Box:
        """Of the weights: the part of the rows that it shares with other tiles."""
        shape = self.graph.tensors[self.layer.weight].shape
        tile = self.cut.weights[task.task.weight]
        low, high = tile.columns
        if self.parted:
            start = self.cut.parts[task.part][0]
            end = self.cut.parts[task.part][1]
            low, high = min(start + low, end), min(start + high, end)
        return (tile.shared, *((0, extent) for extent in shape[1:-1]), (low, high))

    # --- tasks

    def weights(self, task: Chosen) -> Iterator[tuple[str, Box]]:
        period = self.cut.weights[task.task.weight].period
        for kind, box in (("rows", self.rows(task)), ("shared", self.shared(task))):
            if volume(box):
                yield self.name(kind, period), box

    def last(self, task: Chosen) -> bool:
        """The output tile is complete after this input tile."""
        return not self.parted or task.part == len(self.cut.parts) - 1

    def all_channels(self, task: Chosen) -> Range:
        return self.channels(task, (0, self.layer.channels))

    def size(self, task: Chosen, kind: Kind) -> float:
        """Bytes that the task moves, or the work that it does."""
        if kind == "input":
            return volume(self.read(task))
        if kind == "weight":
            return sum(volume(box) for _, box in self.weights(task))
        if kind == "write":
            return volume(self.made(task, self.all_channels(task))) if self.last(task) else 0
        layer = self.layer
        share = (volume(self.read(task)[-1:]) / layer.source_shape[-1]) if self.parted else 1.0
        each = layer.work / layer.target_bytes
        if not self.cut.weights:
            return each * share * volume(self.made(task, self.all_channels(task)))
        total = 0.0
        for _, box in self.weights(task):
            part = volume(box[-1:]) / self.graph.tensors[layer.weight].shape[-1]
            made = volume(self.made(task, self.channels(task, box[0])))
            total += each * made * part
        return total

    def moves(self, task: Chosen) -> Iterator[Step]:
        """Of an IO task."""
        frame, layer = task.task.frame, self.layer
        if task.task.kind == "input":
            box = self.read(task)
            yield Move(piece(layer.source, box, frame), piece(self.name("in"), box, task.input),
                       frame)  # fmt: skip
        elif task.task.kind == "weight":
            for name, box in self.weights(task):
                yield Move(piece(layer.weight, box), piece(name, box, task.weight), frame)
        elif self.last(task):
            box = self.made(task, self.all_channels(task))
            yield Move(piece(self.name("out"), box, task.output), piece(layer.target, box, frame),
                       frame)  # fmt: skip

    def computes(self, task: Chosen) -> Iterator[Step]:
        """Of a compute task."""
        layer, frame = self.layer, task.task.frame
        source = piece(self.name("in"), self.read(task), task.input)
        bias = (self.bias(),) if layer.bias else ()
        if self.parted:
            yield from self.added(task, source, bias)
            return
        if not self.cut.weights:
            box = self.made(task, self.all_channels(task))
            yield Compute(layer.name, self.out(task, box), (source,), frame=frame)
            return
        tile = self.cut.weights[task.task.weight]
        for name, weights in self.weights(task):
            box = self.made(task, self.channels(task, weights[0]))
            held = piece(name, weights, task.weight)
            if not volume(box):
                continue
            if weights == self.rows(task):
                ins = (source, held, *bias)
                yield Compute(layer.name, self.out(task, box), ins, frame=frame)
                continue
            acc = piece(self.name("sums"), box, task.output)
            if tile.opens:
                yield Clear(layer.name, acc, frame)
            yield Compute(layer.name, acc, (source, held), partial=True, frame=frame)
            if tile.closes:
                yield Finish(layer.name, acc, self.out(task, box), bias, frame=frame)

    def added(self, task: Chosen, source: Slice, bias: tuple[Slice, ...]) -> Iterator[Step]:
        """All of it in sums, from the first part of the source to the last."""
        layer, frame, parts = self.layer, task.task.frame, len(self.cut.parts)
        everything = self.made(task, (0, layer.channels))
        acc = piece(self.name("sums"), everything, task.output)
        if task.part == 0 and task.task.weight == 0:
            yield Clear(layer.name, acc, frame)
        for name, weights in self.weights(task):
            some = piece(self.name("sums"), self.made(task, weights[0]), task.output)
            held = piece(name, weights, task.weight)
            yield Compute(layer.name, some, (source, held), partial=True, frame=frame)
        if task.part == parts - 1 and task.task.weight == len(self.cut.weights) - 1:
            yield Finish(layer.name, acc, self.out(task, everything), bias, frame=frame)

    def out(self, task: Chosen, box: Box) -> Slice:
        return piece(self.name("out"), box, task.output)

    def bias(self) -> Slice:
        return Slice(self.layer.bias, (0,), self.graph.tensors[self.layer.bias].shape)
