"""Ways to run a block of operators pixel by pixel: each makes what the next one needs next, so that
of what is between the block's ends only that is held.

Of a residual block of two 3 × 3 convolutions with images w wide that is 2w + 2 pixels and as many
as are made at once, beside the block's input, over which the sum is written. A tiny block goes in
the best of all orders.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.reads import NEVER
from pipeline.search.order import least_peak
from pipeline.search.view.pixels import Order, PixelView, by_pixel, read_at
from pipeline.search.view.whole import Span, Task, View

AT_ONCE = (8, 4, 2, 1)
"""Pixels of a line, besides all."""

NOT_READ = np.iinfo(np.int64).max

TINY = 15
"""Pixels, of all operators."""


class Way(NamedTuple):
    """To run a part of a network.

    Attributes:
        peak: nibbles.
        within: its orders, in steps as large as fit in so many nibbles; in ``peak`` it fits.
    """

    peak: int
    within: Callable[[int], tuple[Order, ...]]


def can_weave(view: PixelView, span: Span) -> bool:
    """Several operators on images, of which none needs all of one."""
    operators = view.part(span)
    return len(operators) > 1 and all(
        by_pixel(op, view.tensors)
        and all(len(view.tensors[name].shape) == 3 for name in (op.output, *op.inputs))
        and not op.reads_all(view.tensors)
        for op in operators
    )


def by_rows(view: PixelView, span: Span, least: int) -> Iterator[Way]:
    """Yield the largest steps first, of at least so many pixels of a row."""
    for n in _at_once(view, span, least):
        yield Way(woven(view, span, n).peak, partial(_within, view, span, n))


def _at_once(view: PixelView, span: Span, least: int) -> list[int]:
    """Pixels of a row of what a block makes, ``least`` or more."""
    row = view.pixels(view.operators[span.stop - 1].output).columns
    return [row, *(n for n in AT_ONCE if least <= n < row)]


def _within(view: PixelView, span: Span, least: int, nibbles: int) -> tuple[Order, ...]:
    """Return each row in the largest steps that fit: what is live between two rows does not depend
    on how these were made."""
    orders = [woven(view, span, n) for n in _at_once(view, span, least)]
    if orders[0].peak <= nibbles:
        return (orders[0],)
    rows, peaks = list[list[IntArray]](), list[IntArray]()
    for order in orders:
        # from the first unit of each row of what is made, with all that is made for it
        times = np.flatnonzero(order.units[:, 0] == span.stop - 1)
        firsts = np.concatenate([[0], times[:-1][np.diff(order.units[times, 1]) != 0] + 1])
        peaks.append(view.nibbles(span.first) + np.maximum.reduceat(order.grown, firsts))
        begins = np.isin(np.arange(len(order.units)), order.starts)
        rows.append(np.split(np.column_stack([order.units, begins]), firsts[1:]))
    taken = np.argmax(np.array(peaks) <= nibbles, axis=0).tolist()
    units = np.concatenate([rows[n][row] for row, n in enumerate(taken)])
    return (Order(view, span, lambda: units[:, :4], np.flatnonzero(units[:, 4])),)


def woven(view: PixelView, span: Span, pixels: int) -> Order:
    """The last operator makes so many of a row at once, row by row; what it needs for that is made
    just before: of several inputs those that the view has later first. Made once."""
    if (span, pixels) in view.known:
        return view.known[span, pixels]
    turn, operators = [span.stop - 1], view.operators
    for number in reversed(range(span.first, span.stop - 1)):
        readers = (operators[number].output in operators[each].inputs for each in turn)
        turn.insert(list(readers).index(True), number)
    height, width = view.pixels(operators[turn[-1]].output)[:2]
    wanted = {turn[-1]: np.arange(height)[:, None] * width + np.arange(width) // pixels}
    units, times = list[IntArray](), list[IntArray]()
    for number in reversed(range(*span)):
        op, wants = operators[number], wanted[number]
        for operand in op.reads(view.tensors):
            if (made := view.made.get(operand.tensor, -1)) >= span.first:
                first = read_at(op, operand, view.tensors, wants, last=False)
                wanted[made] = np.minimum(wanted.get(made, NOT_READ), first)
        rows, columns = np.nonzero(wants != NOT_READ)  # windows may lie in padding, or leave out
        zero = np.zeros_like(rows)
        units.append(np.stack([zero + number, rows, columns, zero], axis=1))
        times.append(wants[rows, columns] * len(turn) + turn.index(number))
    every, time = np.concatenate(units), np.concatenate(times)
    order = np.argsort(time, kind="stable")
    every, time = every[order], time[order]
    gap = np.abs(np.diff(every[:, 2])) > (pixels > 1)
    starts = np.flatnonzero(
        np.append(True, gap | (np.diff(every[:, 1]) != 0) | (np.diff(time) > 0))
    )
    found = view.known[span, pixels] = Order(view, span, lambda: every, starts)
    return found


# --- the best of all orders


Pixel = tuple[int, int, int]
"""The operator that makes it, -1 for what is there at first; row and column."""


def _reads(view: PixelView, span: Span) -> dict[Pixel, set[Pixel]]:
    """Map each pixel that the last operator needs to those that it is made of. Where bytes are
    written over halves of bytes, the halves count as bytes."""
    last, found = span.stop - 1, dict[Pixel, set[Pixel]]()
    wanted = {(last, *at) for at in np.ndindex(view.pixels(view.operators[last].output)[:2])}
    for number in reversed(range(*span)):
        op = view.operators[number]
        for pixel in sorted(each for each in wanted if each[0] == number):
            found[pixel], alone = set(), np.full(view.pixels(op.output)[:2], NEVER)
            alone[pixel[1:]] = 0
            for each in op.reads(view.tensors):
                if (made := view.made.get(each.tensor)) is not None:
                    read = read_at(op, each, view.tensors, alone) == 0
                    if made < 0 and view.by_byte(span):
                        halves = np.repeat(read, view.pixels(each.tensor).each)
                        read = np.pad(halves, (0, len(halves) % 2)).reshape(1, -1, 2).any(axis=2)
                    found[pixel] |= {(made, y, x) for y, x in np.argwhere(read).tolist()}
            wanted |= found[pixel]
    return found


def tiny(view: PixelView, span: Span) -> Iterator[Way]:
    """Yield the best of all orders of the pixels of a block that can be woven, each a task of its
    own; none where it has many."""
    if sum(view.pixels(op.output).number for op in view.part(span)) > TINY:
        return
    reads, dying = _reads(view, span), view.dying(span)
    there = sorted(set[Pixel]().union(*reads.values()) - reads.keys())
    pixels, tasks, sizes, kept = [*there, *sorted(reads)], list[Task](), [0], list[int]()
    number = {pixel: n for n, pixel in enumerate(pixels, 1)}
    for n, pixel in enumerate(pixels):
        name = view.names[pixel[0] + 1]
        sizes.append(2 if pixel[0] < 0 and view.by_byte(span) else view.pixels(name).each)
        kept += [] if name in dying else [n + 1]
        if pixel in reads:  # what dies with it is free when it is stored: between two it is least
            read = tuple(sorted(number[each] for each in reads[pixel]))
            tasks.append(Task(read, scratch=-sizes[-1], after=tuple(range(len(there)))))
        else:
            tasks.append(Task((), after=tuple(range(n))))
    best = least_peak(View(tuple(sizes), tuple(tasks), tuple(kept))).tasks
    turn = np.array([(*pixels[n], 0) for n in best if pixels[n] in reads])
    order = Order(view, span, lambda: turn, np.arange(len(turn)))
    yield Way(order.peak, lambda nibbles: (order,))
