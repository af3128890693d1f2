"""Layout ``slots``: a static address table. Any output element may take any free nibbles.

No element moves at run time; the next layer reads through the table. The arena is as small as
the most that is ever live, because one free nibble is as good as another: nothing fragments.
"""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.reads import NEVER
from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.bounds import ranges
from pipeline.schedules.traversed import Run, Traversed
from pipeline.search.chains.cells import Cells, Full, Place, at, buffer, lying, places
from pipeline.search.chains.traversals import ordered, rows
from pipeline.search.view.pixels import Layer, Order, Pixels, PixelView, by_pixel

Buffers = dict[str, Buffer]
"""Buffers of tensors, by the tensor's name."""


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
        first = _as_it_dies(orders[0], start.name, 0)
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
        for name in view.live[order.span.first]:
            arena.hold(buffers[name])
        order, made = _made(arena, order, after, buffers)
        buffers |= made
        runs += _runs(order, buffers)
    return Traversed(tuple(buffers.values()), tuple(runs), nibbles, above)


def _made(
    arena: Cells, order: Order, after: Order | None, buffers: Buffers
) -> tuple[Order, Buffers]:
    """Place what ``order`` makes; the order may change if that does not matter."""
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
            return row_major, {target.name: _as_it_dies(after, target.name, base)}
    elif (base := _room(arena, row_major, layer, buffers[layer.source.name])) is not None:
        return row_major, {target.name: at(target, base)}
    return order, _follow(arena, order, buffers)


def _fits(order: Order, nibbles: int) -> bool:
    return order.layer is not None and order.layer.fit_beside(nibbles)


def _runs(order: Order, buffers: Buffers) -> list[Run]:
    """Return its steps, places relative to what each makes; they make all that its operators do."""
    if order.row_major:
        (op,) = order.operators
        out = buffers[op.output]
        return [Run(op, (buffers[op.inputs[0]],), out, ranges(out.box))]
    runs = list[Run]()
    for units in np.split(order.units, order.starts[1:]):
        op, group = order.view.operators[units[0, 0]], int(units[0, 3])
        channels = order.view.pixels(op.output).channels // order.groups
        sources = tuple(buffers[name] for name in dict.fromkeys(op.inputs))
        some = group * channels, (group + 1) * channels
        runs.append(Run.of(op, sources, buffers[op.output], units[:, 1:3], some))
    return runs


def _follow(arena: Cells, order: Order, buffers: Buffers) -> Buffers:
    """Put each output pixel where inputs have died: their cells are free before it is written."""
    view, groups, held = order.view, order.groups, dict[str, list[Place]]()
    made = list[tuple[Sequence[str], list[Place], int, int]]()
    for op in order.operators:
        each = view.pixels(op.output)
        held[op.output] = [0] * (each.number * groups)
        size = each.channels // groups, each.nibbles_per_element
        made.append((op.overwritable(view.tensors), held[op.output], *size))
    dying = list[tuple[str, list[Place], int, list[int], list[int]]]()
    for name, last in order.last.items():
        if name not in held:
            held[name] = places(buffers[name], last.size)
        turn = np.argsort(last, axis=None, kind="stable")
        ends = np.searchsorted(last.flat[turn], np.arange(1, len(order.units) + 1)).tolist()
        nibbles = view.pixels(name).each // groups
        dying.append((name, held[name], nibbles, turn.tolist(), [0, *ends]))
    number, y, x, group = order.units.T
    number = number - order.span.first
    columns = np.array([view.pixels(op.output).columns for op in order.operators])
    pixels = ((y * columns[number] + x) * groups + group).tolist()
    for time, (n, pixel) in enumerate(zip(number.tolist(), pixels, strict=True)):
        (over, there, channels, width), kept = made[n], None
        for name, before, nibbles, dead, ends in dying:
            for gone in dead[ends[time] : ends[time + 1]]:
                if gone == pixel and kept is None and name in over:
                    kept = before[gone]
                else:
                    arena.release(before[gone], nibbles)
        there[pixel] = arena.take(channels, width) if kept is None else kept
    tensors = [view.tensors[op.output] for op in order.operators]
    return {each.name: lying(each, held[each.name]) for each in tensors}


def _as_it_dies(order: Order, name: str, base: int) -> Buffer:
    """``name`` in one piece from ``base`` on, its pixels as they die: so it leaves free cells in
    one piece when ``order`` overwrites it."""
    pixels = order.view.pixels(name)
    last = order.last[name][..., -1] if name in order.last else np.zeros(pixels.number)
    rank = np.argsort(np.argsort(last, axis=None, kind="stable"), kind="stable")
    return lying(order.view.tensors[name], (base + rank * pixels.each).tolist())


def _room(arena: Cells, order: Order, layer: Layer, source: Buffer) -> int | None:
    """Return the lowest byte from which the outputs can be written row-major in one piece, every
    cell after its input has died."""
    total, align = layer.outputs.total, max(2, layer.outputs.nibbles_per_element)
    dies, base, early = source.tensor in order.view.dying(order.span), 0, 0
    arena.hold(source, free=dies)
    while early >= 0 and base + total <= arena.size:
        early = arena.marks.rfind(0, base, base + total)
        if dies:
            early = max(early, _early(layer, source, base))
        base = round_up(early + 1, align) if early >= 0 else base
    arena.hold(source)
    return base if base + total <= arena.size else None


def _early(layer: Layer, source: Buffer, base: int) -> int:
    """Return the last cell that outputs from ``base`` on take before what is there is read last; -1
    where none is. Row by row of the input: there may be millions of pixels."""
    (rows, columns), found, stop = layer.lasts, -1, base + layer.outputs.total
    for y in reversed(range(len(rows))):
        box = ((y, y + 1), *source.box[1:]) if len(source.shape) == 3 else source.box
        begins = source.addresses(box).reshape(len(columns), -1)
        if rows[y] == NEVER or (begins[0, 0] >= stop and source.run(source.box) is not None):
            continue
        until = base + (rows[y] * layer.outputs.columns + columns) * layer.outputs.each
        until = np.where(columns == NEVER, base, np.minimum(until, stop))[:, None]
        ends = np.minimum(begins + source.nibbles, until)
        found = max(found, int(np.where(ends > np.maximum(begins, base), ends, 0).max()) - 1)
        if found >= 0 and source.run(source.box) is not None:
            break
    return found
