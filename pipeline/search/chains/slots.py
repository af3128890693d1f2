"""Layout ``slots``: a static address table. Any output element may take any free nibbles.

No element moves at run time; the next layer reads through the table. The arena is as small as
the most that is ever live, because one free nibble is as good as another: nothing fragments.
"""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.traversed import Run, Traversed
from pipeline.search.chains.cells import Cells, Full, Places, at, buffer, in_one_piece
from pipeline.search.chains.traversals import ordered, rows
from pipeline.search.view.pixels import Layer, Order, Pixels, PixelView, by_pixel

Elements = dict[str, IntArray]
"""Where each tensor's elements lie, each of the tensor's shape."""


def arrange(
    view: PixelView, beside: int, orders: Sequence[Order], in_order: bool = True
) -> Traversed:
    """Lay ``orders`` out in the fewest nibbles; the first tensor lies at 0, ``beside`` above it.

    Args:
        in_order: the pixels of the first tensor have to lie row by row.
    """
    start = view.tensors[view.names[0]]
    total = Pixels.of(start).total
    above = round_up(total, WORD) if beside else total
    nibbles = max(above + beside, *(order.peak for order in orders), 0)
    first = at(start, 0)
    if not in_order and orders and start.name in orders[0].last and not _fits(orders[0], nibbles):
        first = buffer(start, in_one_piece(start, 0, _deaths(orders[0], start.name)))
    while True:
        try:
            return _place(nibbles, first, above, orders)
        except Full:  # only where element widths are mixed
            nibbles += 1


def _place(nibbles: int, start: Buffer, above: int, orders: Sequence[Order]) -> Traversed:
    arena, runs = Cells(nibbles), list[Run]()
    elements: Elements = {start.name: start.addresses(start.box)}
    arena.next = start.extent[1]
    buffers = {start.name: start}
    for order, after in zip_longest(orders, orders[1:]):
        view = order.view
        arena.free[:] = True
        for name in view.live(order.span.first):
            arena.mark(elements[name], view.pixels(name).nibbles_per_element, free=False)
        order, made = _made(arena, order, after, elements)
        elements |= made
        buffers |= {name: buffer(view.tensors[name], made[name]) for name in made}
        runs += _runs(order, buffers)
    return Traversed(tuple(buffers.values()), tuple(runs), nibbles, above)


def _made(
    arena: Cells, order: Order, after: Order | None, elements: Elements
) -> tuple[Order, Elements]:
    """Where what ``order`` makes lies; it may change where that does not matter."""
    layer, op, tensors = order.layer, order.operators[-1], order.view.tensors
    target = tensors[op.output]
    if not by_pixel(op, tensors):
        for name in op.overwritable(tensors):
            if name in order.last:
                return order, {target.name: elements[name].reshape(target.shape)}
        if (base := arena.block(Pixels.of(target))) is not None:  # as its kernels want it
            return order, {target.name: in_one_piece(target, base)}
    if layer is None:
        return order, _follow(arena, order, elements)
    row_major = ordered(order.view, order.span.first, rows(*layer.outputs[:2]))
    read = after is not None and any(target.name in each.inputs for each in after.operators)
    if after is not None and read and not _fits(after, arena.size):
        if (base := arena.block(layer.outputs)) is not None:
            return row_major, {target.name: in_one_piece(target, base, _deaths(after, target.name))}
    elif (base := _room(arena, row_major, layer, elements)) is not None:
        return row_major, {target.name: in_one_piece(target, base)}
    return order, _follow(arena, order, elements)


def _fits(order: Order, nibbles: int) -> bool:
    return order.layer is not None and order.layer.fit_beside(nibbles)


def _runs(order: Order, buffers: dict[str, Buffer]) -> list[Run]:
    """Its steps, places relative to what each makes; they make all that its operators do."""
    runs, (lows, highs) = list[Run](), order.boxes
    pieces = np.split(order.units, order.starts[1:])
    for units, low, stop in zip(pieces, lows.tolist(), (highs + 1).tolist(), strict=True):
        op = order.view.operators[low[0]]
        rows, columns = units[:, 1] - low[1], units[:, 2] - low[2]
        in_turn = (np.diff(rows * (stop[2] - low[2]) + columns) > 0).all()
        places = () if in_turn else zip(rows.tolist(), columns.tolist(), strict=True)
        channels = order.view.pixels(op.output).channels // order.groups
        box = (low[1], stop[1]), (low[2], stop[2]), (low[3] * channels, (low[3] + 1) * channels)
        sources = tuple(buffers[name] for name in dict.fromkeys(op.inputs))
        runs.append(Run.of(op, sources, buffers[op.output], box, places))
    return runs


def _follow(arena: Cells, order: Order, elements: Elements) -> Elements:
    """Put each output pixel where inputs have died: their cells are free before it is written."""
    view, operators, groups = order.view, order.operators, order.groups
    held = {op.output: Places(view.pixels(op.output), groups) for op in operators}
    dying = list[tuple[str, Places, list[int], list[int]]]()
    for name, last in order.last.items():
        times = last.reshape(-1)
        if name not in held:
            held[name] = Places(view.pixels(name), groups, elements[name])
        turn = np.argsort(times, kind="stable").tolist()
        ends = np.searchsorted(np.sort(times), np.arange(len(order.units) + 1)).tolist()
        dying.append((name, held[name], turn, ends))
        arena.release(held[name], turn[: ends[0]])
    made = [(op.overwritable(view.tensors), held[op.output]) for op in operators]
    number, y, x, group = order.units.T
    number = number - order.span.first
    columns = np.array([view.pixels(op.output).columns for op in operators])
    pixels = (y * columns[number] + x) * groups + group
    for time, (op, pixel) in enumerate(zip(number.tolist(), pixels.tolist(), strict=True)):
        (over, places), kept = made[op], None
        for name, there, turn, ends in dying:
            begin, end = ends[time], ends[time + 1]
            if begin == end:
                continue
            dead = turn[begin:end]
            if over and kept is None and name in over and pixel in dead:
                kept = there.of[pixel]
                dead.remove(pixel)
            arena.release(there, dead)
        places.of[pixel] = arena.take(places.channels, places.width) if kept is None else kept
    return {
        op.output: held[op.output].elements.reshape(view.tensors[op.output].shape)
        for op in operators
    }


def _deaths(order: Order, name: str) -> IntArray:
    """The place of each pixel of ``name`` in the order in which they die.

    An input laid out so leaves free cells in one piece when ``order`` overwrites it.
    """
    number = order.view.pixels(name).number
    last = order.last[name][..., -1].reshape(-1) if name in order.last else np.zeros(number)
    return np.argsort(np.argsort(last, kind="stable"))


def _room(arena: Cells, order: Order, layer: Layer, elements: Elements) -> int | None:
    """The lowest byte from which the outputs can be written row-major in one piece, every cell
    after its input has died."""
    pixels, given, source = layer.outputs, layer.inputs, layer.source.name
    # cell c is free for unit n, from offset n * each on: the base is at most c - n * each
    highest = np.where(arena.free, np.int32(arena.size), np.int32(-1))
    if source in order.last:
        before = (order.last[source].reshape(-1, 1) * pixels.each).astype(np.int32)
        first = elements[source].reshape(given.number, -1).astype(np.int32)
        for nibble in range(given.nibbles_per_element):
            highest[first + nibble] = first + nibble - before
    base, align = 0, max(2, pixels.nibbles_per_element)
    while base + pixels.total <= arena.size:
        early = np.flatnonzero(highest[base : base + pixels.total] < base)
        if not early.size:
            return base
        base = round_up(base + int(early[-1]) + 1, align)
    return None
