"""What the tasks of a layer's tiles move and compute, as steps of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box, Tensor
from pipeline.plan.vocabulary import Buffer, Clear, Compute, Finish, Move, Slice, Step
from pipeline.strategies.swap.algorithm1 import Chosen, Kind
from pipeline.strategies.swap.cuts import Cut, Range, sums
from pipeline.strategies.swap.places import window


def piece(buffer: Buffer, box: Box, copy: int = 0) -> Slice:
    """``box`` as a slice. A tile at the end of the tensor has the size of a whole one: slices are
    clipped, and steps that differ in nothing else than the size of the last become one loop."""
    low, sizes = [], []
    for (start, stop), extent, ring in zip(box, buffer.shape, buffer.wrap, strict=True):
        low.append(start)
        sizes.append(ring if ring and stop == extent else stop - start)
    return Slice(buffer.name, tuple(low), tuple(sizes), copy)


def beside(one: Slice, buffer: str, copy: int = 0) -> Slice:
    """The same elements in another buffer."""
    return replace(one, buffer=buffer, copy=copy)


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
    buffer: dict[str, Buffer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        layer, cut, tensors = self.cut.tiling.layer, self.cut, self.graph.tensors
        self.layer = layer
        self.parted = len(cut.parts) > 1 and not layer.channelwise
        room, inputs, weights, outputs = self.pools
        depth = longest(iter(cut.parts))
        source, target = tensors[layer.source], tensors[layer.target]
        sides = cut.window if layer.windows else source.shape[:-1]
        self.add("in", source, 0, (*sides, depth), 8, inputs)
        base = (inputs + weights) * room
        channels = depth if layer.channelwise else layer.channels
        held = [longest(iter(cut.rows)), longest(iter(cut.columns)), channels]
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
            sizes = self.of(held)
            self.add("sums", target, base + above, sizes, 32, outputs)
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
        name, room = f"{self.layer.name}.{kind}", self.pools.buffer_bytes
        self.buffer[kind] = window(name, tensor, base, sizes, bits, copies, room)

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
                yield f"{kind}{period or ''}", box

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
            held = self.held("in", box, task.input)
            yield Move(beside(held, layer.source, frame), held, frame)
        elif task.task.kind == "weight":
            for name, box in self.weights(task):
                held = self.held(name, box, task.weight)
                yield Move(beside(held, layer.weight), held, frame)
        elif self.last(task):
            box = self.made(task, self.all_channels(task))
            held = self.held("out", box, task.output)
            yield Move(held, beside(held, layer.target, frame), frame)

    def computes(self, task: Chosen) -> Iterator[Step]:
        """Of a compute task."""
        layer, frame = self.layer, task.task.frame
        source = self.held("in", self.read(task), task.input)
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
            held = self.held(name, weights, task.weight)
            if not volume(box):
                continue
            if weights == self.rows(task):
                ins = (source, held, *bias)
                yield Compute(layer.name, self.out(task, box), ins, frame=frame)
                continue
            acc = self.held("sums", box, task.output)
            if tile.opens:
                yield Clear(layer.name, acc, frame)
            yield Compute(layer.name, acc, (source, held), partial=True, frame=frame)
            if tile.closes:
                yield Finish(layer.name, acc, self.out(task, box), bias, frame=frame)

    def added(self, task: Chosen, source: Slice, bias: tuple[Slice, ...]) -> Iterator[Step]:
        """All of it in sums, from the first part of the source to the last."""
        layer, frame, parts = self.layer, task.task.frame, len(self.cut.parts)
        everything = self.made(task, (0, layer.channels))
        acc = self.held("sums", everything, task.output)
        if task.part == 0 and task.task.weight == 0:
            yield Clear(layer.name, acc, frame)
        for name, weights in self.weights(task):
            some = self.held("sums", self.made(task, weights[0]), task.output)
            held = self.held(name, weights, task.weight)
            yield Compute(layer.name, some, (source, held), partial=True, frame=frame)
        if task.part == parts - 1 and task.task.weight == len(self.cut.weights) - 1:
            yield Finish(layer.name, acc, self.out(task, everything), bias, frame=frame)

    def held(self, kind: str, box: Box, copy: int) -> Slice:
        return piece(self.buffer[kind], box, copy)

    def out(self, task: Chosen, box: Box) -> Slice:
        return self.held("out", box, task.output)

    def bias(self) -> Slice:
        return Slice(self.layer.bias, (0,), self.graph.tensors[self.layer.bias].shape)
