"""Some operators of a flow in place, pixel by pixel: when each pixel is made, and when it dies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipeline.graph.access import Operand
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.tensor import IntArray
from pipeline.kernels.int4 import crops
from pipeline.plan.reads import NEVER, read_times
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.layer import Layer, PixelBox, Pixels
from pipeline.search.chains.traversals import Peels, ranks, rows


class Piece(NamedTuple):
    """``op`` makes the pixels ``made``, in ``order`` (row, column; empty: row-major).

    Attributes:
        group: which of the item's groups of channels; all, where it has one.
    """

    op: Operator
    made: PixelBox
    order: tuple[tuple[int, int], ...] = ()
    group: int = 0


@dataclass(frozen=True, eq=False)
class Item:
    """
    Attributes:
        order: (units, 4): the operator, the row and the column of each pixel in turn, and which of
            its groups of channels.
        starts: the first unit of each step.
        groups: of channels, made one after the other, each from one of the input.
    """

    flow: Flow
    span: Span
    order: IntArray
    starts: IntArray
    groups: int = 1

    @classmethod
    def of(cls, flow: Flow, number: int, peels: Peels, groups: int = 1) -> Item:
        """One operator, by ``peels`` for each of ``groups`` of channels; made once."""
        key = number, peels, groups
        if key not in flow.items:
            flow.items[key] = cls._of(flow, number, peels, groups)
        return flow.items[key]

    @classmethod
    def _of(cls, flow: Flow, number: int, peels: Peels, groups: int) -> Item:
        height, width = Pixels.of(flow.tensors[flow.operators[number].output])[:2]
        turn = np.argsort(ranks(height, width, peels), axis=None)
        order = np.empty((groups, len(turn), 4), dtype=np.int64)
        order[..., 0] = number
        order[..., 1], order[..., 2] = np.divmod(turn, width)
        order[..., 3] = np.arange(groups)[:, None]
        starts = np.arange(groups) * len(turn)
        return cls(flow, Span(number, number + 1), order.reshape(-1, 4), starts, groups)

    @cached_property
    def _boxes(self) -> tuple[IntArray, IntArray]:
        """Of each step the least and the greatest of what ``order`` has, (steps, 4) each."""
        return (
            np.minimum.reduceat(self.order, self.starts),
            np.maximum.reduceat(self.order, self.starts),
        )

    @property
    def sizes(self) -> IntArray:
        """Of each step its operator, rows and columns, (steps, 3)."""
        lows, highs = self._boxes
        return np.column_stack([lows[:, 0], highs[:, 1:3] - lows[:, 1:3] + 1])

    @cached_property
    def pieces(self) -> list[Piece]:
        """One after the other; they make all that ``span`` does."""
        lows, stops = (each.tolist() for each in (self._boxes[0], self._boxes[1] + 1))
        ends = [*self.starts[1:].tolist(), self.units]
        found = list[Piece]()
        for first, end, low, stop in zip(self.starts.tolist(), ends, lows, stops, strict=True):
            made = (low[1], stop[1]), (low[2], stop[2])
            order = self._order(first, end) if end - first > 1 else ()
            found.append(Piece(self.flow.operators[low[0]], made, order, low[3]))
        return found

    def _order(self, first: int, end: int) -> tuple[tuple[int, int], ...]:
        rows, columns = self.order[first:end, 1], self.order[first:end, 2]
        along = np.diff(rows * (int(columns.max()) + 1) + columns)
        return () if (along > 0).all() else tuple(zip(rows.tolist(), columns.tolist(), strict=True))

    @property
    def layer(self) -> Layer | None:
        """If it is one operator that slides over what one tensor has, all channels at once."""
        op = self.flow.operators[self.span.first]
        alone = self.span.stop == self.span.first + 1 and len(self.starts) == 1 and op.slides
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
        """The most nibbles live at once when any output may lie in any free nibble."""
        return self.flow.nibbles(self.span.first) + max(0, int(self.grown.max()))

    @cached_property
    def grown(self) -> IntArray:
        """Nibbles more than at first that are live as each unit is stored.

        A unit reads all its inputs before it writes, so the inputs that die with unit n are free
        already when its outputs are stored. The paper (section 3.2) frees them after the write; its
        peak is up to k fin higher. Of halves of bytes that bytes are written over, both have to
        be dead: counted of the first tensor, which lies row-major; the others lie as they may.
        """
        sizes = [self.pixels(op.output).each // self.groups for op in self.flow.of(self.span)]
        written = np.array([0, *sizes])[np.append(-1, self.order[:, 0] - self.span.first) + 1]
        freed = np.zeros(self.units + 1, dtype=np.int64)
        for name, last in self.last.items():
            each, times = self.pixels(name).each // self.groups, last.reshape(-1)
            if name == self.flow.start and self.by_byte:
                halves = np.repeat(times, each)
                each, times = 2, np.maximum(halves[: len(halves) // 2 * 2 : 2], halves[1::2])
                freed[halves[-1] + 1 :][:1] += len(halves) % 2
            freed += each * np.bincount(times + 1, minlength=self.units + 1)[: self.units + 1]
        return (np.cumsum(written) - np.cumsum(freed))[1:]

    @property
    def by_byte(self) -> bool:
        """Whether it makes bytes, or more, of halves of bytes."""
        operators, tensors = self.flow.of(self.span), self.flow.tensors
        widths = [Pixels.of(tensors[op.output]).nibbles_per_element for op in operators]
        return self.pixels(operators[0].inputs[0]).nibbles_per_element == 1 < min(widths)

    @property
    def units(self) -> int:
        return len(self.order)

    @cached_property
    def ranks(self) -> dict[str, IntArray]:
        """When each pixel is made, shape (h, w, groups); NEVER where nothing needs it."""
        found = dict[str, IntArray]()
        for number in range(*self.span):
            name = self.flow.operators[number].output
            height, width = self.pixels(name)[:2]
            found[name] = np.full((height, width, self.groups), NEVER)
            times = np.flatnonzero(self.order[:, 0] == number)
            found[name][tuple(self.order[times, 1:].T)] = times
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
        if not by_pixel(op, self.flow.tensors):
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


def by_pixel(op: Operator, tensors: Tensors) -> bool:
    """Whether pixels are made one after the other, each of what it needs; of others all are made at
    once, over an input that they may take the place of or apart."""
    return op.slides or op.element_wise or crops(op, tensors)
