"""The ways to weave a block: so many pixels of a line at once, in every line as many as fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.items import Item, by_pixel
from pipeline.search.chains.woven import Way, woven

AT_ONCE = (8, 4, 2)
"""Pixels of a line, besides all."""


def can_weave(flow: Flow, span: Span) -> bool:
    """Several operators on images, of which none needs all of one."""
    operators = flow.of(span)
    return len(operators) > 1 and all(
        by_pixel(op, flow.tensors)
        and all(len(flow.tensors[name].shape) == 3 for name in (op.output, *op.inputs))
        and not op.reads_all(flow.tensors)
        for op in operators
    )


@dataclass(frozen=True, eq=False)
class Weave:
    """Of ``span``, as ``way`` says or with more pixels at once."""

    flow: Flow
    span: Span
    way: Way

    @classmethod
    def by_rows(cls, flow: Flow, span: Span) -> Iterator[Weave]:
        """The largest steps first."""
        width = _width(flow, span, Way(1))
        yield from (cls(flow, span, Way(n)) for n in _at_once(width, 2))

    @classmethod
    def pixel_by_pixel(cls, flow: Flow, span: Span) -> Iterator[Weave]:
        """From any corner, by rows and by columns."""
        for each in product((False, True), repeat=3):
            yield cls(flow, span, Way(1, *each))

    @cached_property
    def peak(self) -> int:
        return self._item(self.way).peak

    def within(self, nibbles: int) -> tuple[Item, ...]:
        """What is live between two lines does not depend on how these were made: each line is
        made in the largest steps that fit."""
        width = _width(self.flow, self.span, self.way)
        sizes = _at_once(width, self.way.pixels)
        items = [self._item(self.way._replace(pixels=n)) for n in sizes]
        return (_mixed(items, self.way.by_column, nibbles),)

    def _item(self, way: Way) -> Item:
        key, items = (self.span, way), self.flow.items
        if key not in items:
            items[key] = woven(self.flow, self.span, way)
        return items[key]


def _width(flow: Flow, span: Span, way: Way) -> int:
    """Pixels of a line of what a block makes."""
    return flow.tensors[flow.operators[span.stop - 1].output].shape[0 if way.by_column else 1]


def _at_once(width: int, least: int) -> list[int]:
    """Pixels of such a line, ``least`` or more."""
    return [width, *(n for n in (*AT_ONCE, 1) if least <= n < width)]


def _mixed(items: Sequence[Item], by_column: bool, nibbles: int) -> Item:
    """Each line as the first of ``items`` makes it that takes no more there; the last one fits."""
    if items[0].peak <= nibbles:
        return items[0]
    lines = [_lines(item, by_column) for item in items]
    before = items[0].flow.nibbles(items[0].span.first)
    peaks = [
        before + np.maximum.reduceat(item.grown, firsts)
        for item, firsts in zip(items, lines, strict=True)
    ]
    taken = np.argmax(np.array(peaks) <= nibbles, axis=0).tolist()
    orders, begins = list[IntArray](), list[IntArray]()
    for line, n in enumerate(taken):
        item = items[n]
        begin = np.zeros(item.units, dtype=bool)
        begin[item.starts] = True
        some = slice(*[*lines[n], item.units][line : line + 2])
        orders.append(item.order[some])
        begins.append(begin[some])
    starts = np.flatnonzero(np.concatenate(begins))
    return Item(items[0].flow, items[0].span, np.concatenate(orders), starts)


def _lines(item: Item, by_column: bool) -> IntArray:
    """The first unit of each line of what ``item`` makes, with all that is made for it."""
    times = np.flatnonzero(item.order[:, 0] == item.span.stop - 1)
    line = item.order[times, 2 if by_column else 1]
    return np.concatenate([[0], times[:-1][np.diff(line) != 0] + 1])
