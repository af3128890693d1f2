"""Layout ``slots``: a static address table. Any output element may take any free nibbles.

No element moves at run time; the next layer reads through the table. The arena is as small as
the most that is ever live, because one free nibble is as good as another: nothing fragments.
"""

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.reads import NEVER
from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.traversed import Run, Traversed
from pipeline.search.chains.cells import Cells, Full, Places, at, buffer, in_one_piece
from pipeline.search.chains.traversals import ordered, rows
from pipeline.search.view.pixels import Layer, Order, Pixels, PixelView, by_pixel

Buffers = dict[str, Buffer]
"""Where each tensor lies, by its name."""


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
    buffers = {start.name: start}
    arena.next = start.extent[1]
    for order, after in zip_longest(orders, orders[1:]):
        view = order.view
        arena.free[:] = True
        for name in view.live(order.span.first):
            arena.hold(buffers[name])
        order, made = _made(arena, order, after, buffers)
        buffers |= made
        runs += _runs(order, buffers)
    return Traversed(tuple(buffers.values()), tuple(runs), nibbles, above)


def _made(
    arena: Cells, order: Order, after: Order | None, buffers: Buffers
) -> tuple[Order, Buffers]:
    """Where what ``order`` makes lies; it may change where that does not matter."""
    layer, op, tensors = order.layer, order.operators[-1], order.view.tensors
    target = tensors[op.output]
    if not by_pixel(op, tensors):
        for name in op.overwritable(tensors):
            if name in order.last:
                place = buffers[name].addresses(buffers[name].box)
                return order, {target.name: buffer(target, place.reshape(target.shape))}
        if (base := arena.block(Pixels.of(target))) is not None:  # as its kernels want it
            return order, {target.name: at(target, base)}
    if layer is None:
        return order, _follow(arena, order, buffers)
    row_major = ordered(order.view, order.span.first, rows(*layer.outputs[:2]))
    read = after is not None and any(target.name in each.inputs for each in after.operators)
    if after is not None and read and not _fits(after, arena.size):
        if (base := arena.block(layer.outputs)) is not None:
            place = in_one_piece(target, base, _deaths(after, target.name))
            return row_major, {target.name: buffer(target, place)}
    elif (base := _room(arena, row_major, layer, buffers[layer.source.name])) is not None:
        return row_major, {target.name: at(target, base)}
    return order, _follow(arena, order, buffers)


def _fits(order: Order, nibbles: int) -> bool:
    return order.layer is not None and order.layer.fit_beside(nibbles)


def _runs(order: Order, buffers: Buffers) -> list[Run]:
    """Its steps, places relative to what each makes; they make all that its operators do."""
    if order.row_major:
        (op,) = order.operators
        out = buffers[op.output]
        return [Run.of(op, (buffers[op.inputs[0]],), out, out.box)]
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


def _follow(arena: Cells, order: Order, buffers: Buffers) -> Buffers:
    """Put each output pixel where inputs have died: their cells are free before it is written."""
    view, operators, groups = order.view, order.operators, order.groups
    held = {op.output: Places(view.pixels(op.output), groups) for op in operators}
    dying = list[tuple[str, Places, list[int], list[int]]]()
    for name, last in order.last.items():
        times = last.reshape(-1)
        if name not in held:
            cells = buffers[name].addresses(buffers[name].box)
            held[name] = Places(view.pixels(name), groups, cells)
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
    tensors = [view.tensors[op.output] for op in operators]
    return {t.name: buffer(t, held[t.name].elements.reshape(t.shape)) for t in tensors}


def _deaths(order: Order, name: str) -> IntArray:
    """The place of each pixel of ``name`` in the order in which they die.

    An input laid out so leaves free cells in one piece when ``order`` overwrites it.
    """
    number = order.view.pixels(name).number
    last = order.last[name][..., -1].reshape(-1) if name in order.last else np.zeros(number)
    return np.argsort(np.argsort(last, kind="stable"), kind="stable")


def _room(arena: Cells, order: Order, layer: Layer, source: Buffer) -> int | None:
    """The lowest byte from which the outputs can be written row-major in one piece, every cell
    after its input has died."""
    total, align = layer.outputs.total, max(2, layer.outputs.nibbles_per_element)
    dies, first = source.tensor in order.view.dying(order.span), source.run(source.box)
    if order.row_major and dies and first is not None:
        early = partial(_early_in_rows, arena, layer, first)
    else:
        early = partial(_early, _highest(arena, order, layer, source if dies else None))
    base = 0
    while base + total <= arena.size:
        if (last := early(base, base + total)) < 0:
            return base
        base = round_up(last + 1, align)
    return None


def _highest(arena: Cells, order: Order, layer: Layer, source: Buffer | None) -> IntArray:
    """Of each cell how high the outputs may begin: it has to be free for unit n, which writes from
    n times a pixel above that on."""
    highest = np.where(arena.free, np.int32(arena.size), np.int32(-1))
    if source is not None:
        before = (order.last[source.tensor].reshape(-1, 1) * layer.outputs.each).astype(np.int32)
        cells = source.addresses(source.box).reshape(layer.inputs.number, -1).astype(np.int32)
        for nibble in range(source.nibbles):
            highest[cells + nibble] = cells + nibble - before
    return highest


def _early(highest: IntArray, base: int, stop: int) -> int:
    """The last cell up to ``stop`` that is written before it is free; -1 where none is."""
    early = np.flatnonzero(highest[base:stop] < base)
    return base + int(early[-1]) if early.size else -1


def _early_in_rows(arena: Cells, layer: Layer, first: int, base: int, stop: int) -> int:
    """The same where the input, which dies, lies row-major from ``first`` on."""
    end, fin = first + layer.inputs.total, layer.inputs.each
    others = (base, min(stop, first)), (max(base, end), stop)
    found = max(arena.marks.rfind(0, *each) for each in others)
    (rows, columns), pixels = layer.lasts, np.arange(layer.inputs.columns)
    below = range(layer.inputs.rows)[: max(0, -(-(stop - first) // (fin * len(pixels))))]
    for y in reversed(below):
        begins = first + (y * len(pixels) + pixels) * fin
        # the cells of a pixel that are written before the last of the output that reads it
        until = base + (rows[y] * layer.outputs.columns + columns) * layer.outputs.each
        ends = np.minimum(np.minimum(until, stop), begins + fin)
        early = (ends > np.maximum(begins, base)) & (columns != NEVER) & (rows[y] != NEVER)
        if early.any():
            return max(found, int(ends[early].max()) - 1)
    return found
