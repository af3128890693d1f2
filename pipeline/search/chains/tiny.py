"""The best of all orders in which the pixels of a tiny block can be made.

Of a set of pixels that are made, what is live does not depend on their order: the least peak of
all orders is a path through sets, each with a pixel more, found by dynamic programming.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.reads import positions
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.items import Item
from pipeline.search.chains.layer import Pixels

MOST = 15
"""Pixels, of all operators: there are 2^15 sets."""

FULL = np.iinfo(np.int64).max


class Pixel(NamedTuple):
    tensor: str
    row: int
    column: int


@dataclass(frozen=True, eq=False)
class Tiny:
    """A block of few pixels, one after the other."""

    flow: Flow
    span: Span

    @classmethod
    def of(cls, flow: Flow, span: Span) -> Iterator[Tiny]:
        """None, of a block that can be woven, where there are too many."""
        shapes = (flow.tensors[op.output].shape for op in flow.of(span))
        if sum(height * width for height, width, _ in shapes) <= MOST:
            yield cls(flow, span)

    @property
    def peak(self) -> int:
        return self._item.peak

    def within(self, nibbles: int) -> tuple[Item, ...]:
        return (self._item,)

    @cached_property
    def _item(self) -> Item:
        numbers = self.flow.made
        order = [(numbers[name], y, x, 0) for name, y, x in self._order()]
        return Item(self.flow, self.span, np.array(order), np.arange(len(order)))

    @cached_property
    def _reads(self) -> dict[Pixel, set[Pixel]]:
        """What each pixel is made of; of what the last operator needs."""
        tensors, found = self.flow.tensors, dict[Pixel, set[Pixel]]()
        name = self.flow.operators[self.span.stop - 1].output
        height, width, _ = tensors[name].shape
        wanted = {Pixel(name, y, x) for y in range(height) for x in range(width)}
        for op in reversed(self.flow.of(self.span)):
            for pixel in sorted(each for each in wanted if each.tensor == op.output):
                box = (pixel.row, pixel.row + 1), (pixel.column, pixel.column + 1)
                found[pixel] = {
                    Pixel(operand.tensor, y, x)
                    for operand in op.reads(tensors)
                    if operand.tensor in self.flow.made
                    for y in self._inside(operand.tensor, 0, positions(operand.windows[0], box))
                    for x in self._inside(operand.tensor, 1, positions(operand.windows[1], box))
                }
                wanted |= found[pixel]
        return found

    def _inside(self, tensor: str, axis: int, read: IntArray) -> list[int]:
        end = self.flow.tensors[tensor].shape[axis]
        return [n for n in read.reshape(-1).tolist() if 0 <= n < end]

    def _order(self) -> list[Pixel]:
        """From the last pixel back: each time the one without which least has been live."""
        pixels, best = list(self._reads), self._best()
        made, order = len(best) - 1, list[Pixel]()
        while made:
            ways = [(int(best[made & ~(1 << n)]), n) for n in range(len(pixels)) if made >> n & 1]
            _, number = min(ways)
            order.append(pixels[number])
            made &= ~(1 << number)
        return order[::-1]

    def _best(self) -> IntArray:
        """The least peak with which each set of pixels can have been made; nibbles."""
        bit = {pixel: 1 << n for n, pixel in enumerate(self._reads)}
        sets = np.arange(1 << len(bit))
        live, can_be = np.zeros(len(sets), dtype=np.int64), np.ones(len(sets), dtype=bool)
        readers = dict.fromkeys(bit, 0)
        for pixel, read in self._reads.items():
            for each in read:
                readers[each] = readers.get(each, 0) | bit[pixel]
        dying = self.flow.dying(self.span)
        for pixel, needs in readers.items():
            there = sets & bit[pixel] > 0 if pixel in bit else True
            dead = (sets & needs == needs) & (pixel.tensor in dying)
            live += Pixels.of(self.flow.tensors[pixel.tensor]).each * (there & ~dead)
            if pixel in bit:
                can_be &= there | (sets & needs == 0)
        best = np.where(can_be, live, FULL)
        counts = np.bitwise_count(sets)
        for count in range(1, len(bit) + 1):
            some = sets[(counts == count) & can_be]
            before = [np.where(some & each > 0, best[some & ~each], FULL) for each in bit.values()]
            best[some] = np.maximum(best[some], np.min(before, axis=0))
        return best
