"""Some operators of a flow in place, pixel by pixel: when each pixel is made, and when it dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from pipeline.graph.access import Operand
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import IntArray
from pipeline.plan.reads import NEVER, read_times
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.layer import Layer, PixelBox, Pixels
from pipeline.search.chains.traversals import Peels, rows


@dataclass(frozen=True)
class Piece:
    """``op`` makes the pixels ``made``, in ``order`` (row, column; empty: row-major).

    Attributes:
        group: which of the item's groups of channels; all, where it has one.
    """

    op: Operator
    made: PixelBox
    order: tuple[tuple[int, int], ...] = ()
    group: int = 0

    def pixels(self) -> Iterator[tuple[int, int]]:
        rows, columns = (range(*side) for side in self.made)
        return iter(self.order) if self.order else product(rows, columns)


@dataclass(frozen=True)
class Item:
    """
    Attributes:
        pieces: one after the other; they make all that ``span`` does.
        groups: of channels, made one after the other, each from one of the input.
    """

    flow: Flow
    span: Span
    pieces: tuple[Piece, ...]
    groups: int = 1

    @classmethod
    def of(cls, flow: Flow, number: int, peels: Peels, groups: int = 1) -> Item:
        """One operator, by ``peels`` for each of ``groups`` of channels."""
        op = flow.operators[number]
        pixels = Pixels.of(flow.tensors[op.output])
        order = tuple(pixel for line in peels for pixel in line.pixels())
        order = () if peels == rows(*pixels[:2]) else order
        pieces = tuple(Piece(op, pixels.box, order, group) for group in range(groups))
        return cls(flow, Span(number, number + 1), pieces, groups)

    @property
    def layer(self) -> Layer | None:
        """If it is one operator that slides over what one tensor has, all channels at once."""
        op = self.flow.operators[self.span.first]
        alone = len(self.pieces) == 1 and op.slides
        return Layer(op, self.flow.tensors) if alone else None

    def in_rows(self) -> Item:
        """The same row-major, all channels of a pixel at once; of a layer."""
        return Item.of(self.flow, self.span.first, rows(*self.pixels(self.output)[:2]))

    @property
    def output(self) -> str:
        return self.flow.operators[self.span.stop - 1].output

    def pixels(self, tensor: str) -> Pixels:
        return Pixels.of(self.flow.tensors[tensor])

    @property
    def peak(self) -> int:
        """The most nibbles live at once when any output may lie in any free nibble.

        A unit reads all its inputs before it writes, so the inputs that die with unit n are free
        already when its outputs are stored. The paper (section 3.2) frees them after the write; its
        peak is up to k fin higher. Of halves of bytes that bytes are written over, both have to
        be dead: counted of the first tensor, which lies row-major; the others lie as they may.
        """
        written = np.zeros(self.units + 1, dtype=np.int64)
        freed = np.zeros(self.units + 1, dtype=np.int64)
        for name, ranks in self.ranks.items():
            written[ranks[ranks != NEVER] + 1] = self.pixels(name).each // self.groups
        for name, last in self.last.items():
            each, times = self.pixels(name).each // self.groups, last.reshape(-1)
            if name == self.flow.start and self.by_byte:
                halves = np.repeat(times, each)
                each, times = 2, np.maximum(halves[: len(halves) // 2 * 2 : 2], halves[1::2])
                freed[halves[-1] + 1 :][:1] += len(halves) % 2
            freed += each * np.bincount(times + 1, minlength=self.units + 1)[: self.units + 1]
        grown = np.cumsum(written) - np.cumsum(freed)
        return self.flow.nibbles(self.span.first) + max(0, int(grown[1:].max()))

    @property
    def by_byte(self) -> bool:
        """Whether it makes bytes, or more, of halves of bytes."""
        operators, tensors = self.flow.of(self.span), self.flow.tensors
        widths = [Pixels.of(tensors[op.output]).nibbles_per_element for op in operators]
        return self.pixels(operators[0].inputs[0]).nibbles_per_element == 1 < min(widths)

    @cached_property
    def units(self) -> int:
        return sum(int((ranks != NEVER).sum()) for ranks in self.ranks.values())

    @cached_property
    def ranks(self) -> dict[str, IntArray]:
        """When each pixel is made, shape (h, w, groups); NEVER where nothing needs it."""
        found, time = dict[str, IntArray](), 0
        for piece in self.pieces:
            name = piece.op.output
            height, width = self.pixels(name)[:2]
            ranks = found.setdefault(name, np.full((height, width, self.groups), NEVER))
            y, x = np.array(list(piece.pixels())).reshape(-1, 2).T
            ranks[y, x, piece.group] = np.arange(time, time + len(y))
            time += len(y)
        return found

    @cached_property
    def last(self) -> dict[str, IntArray]:
        """When each pixel of what dies is read last, shape (h, w, groups), or can be overwritten if
        it is made and not read; NEVER (-1) where it was there before and is not read; the number
        of units where not before the end."""
        found = dict[str, IntArray]()
        dying = self.flow.dying(self.span)
        for name in dying:
            pixels = self.pixels(name)
            found[name] = np.full((pixels.rows, pixels.columns, self.groups), NEVER)
        for op in self.flow.of(self.span):
            for operand in op.reads(self.flow.tensors):
                if operand.tensor in found:
                    self._read(op, operand, found[operand.tensor])
        for name in dying:
            if name in self.ranks:
                ranks, last = self.ranks[name], found[name]
                last[ranks == NEVER] = self.units
                last[:] = np.where(last == NEVER, ranks + 1, last)
        return found

    def _read(self, op: Operator, operand: Operand, last: IntArray) -> None:
        if not by_pixel(op):
            last[:] = 0 if operand.tensor in op.overwritable(self.flow.tensors) else self.units
            return
        ranks = self.ranks[op.output]
        axes = 2 if len(self.flow.tensors[operand.tensor].shape) == 3 else 1
        spatial = Operand(operand.tensor, operand.windows[:axes])
        grid = [np.arange(n) for n in last.shape[2 - axes : 2]]
        for group in range(self.groups):
            times = ranks[..., group]
            times = times if len(self.flow.tensors[op.output].shape) == 3 else times[0]
            box = tuple((0, extent) for extent in times.shape)
            read = read_times(spatial, box, times, grid, last=True)
            last[..., group] = np.maximum(last[..., group], read.reshape(last.shape[:2]))


def by_pixel(op: Operator) -> bool:
    """Whether pixels are made one after the other, each of what it needs; of others all are made at
    once, over an input that they may take the place of or apart."""
    return op.slides or op.element_wise
