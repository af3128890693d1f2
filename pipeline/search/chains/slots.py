"""Layout ``slots``: a static address table. Any output element may take any free nibbles.

No element moves at run time; the next layer reads through the table. The arena is as small as
the most that is ever live, because one free nibble is as good as another: nothing fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pipeline.graph.tensor import Box, IntArray
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.vocabulary import Buffer
from pipeline.schedules.bounds import ranges
from pipeline.schedules.traversed import Run, Turn
from pipeline.search.chains import address_maps
from pipeline.search.chains.arrangement import Arrangement, fits_beside
from pipeline.search.chains.flow import Flow
from pipeline.search.chains.free_cells import Cells, Full
from pipeline.search.chains.items import Item, Piece, by_pixel
from pipeline.search.chains.layer import Layer, Pixels
from pipeline.search.chains.places import Places

Elements = dict[str, IntArray]
"""Where each tensor's elements lie, each of the tensor's shape."""


def arrange(flow: Flow, beside: int, items: Sequence[Item], in_order: bool = True) -> Arrangement:
    """Lay ``items`` out in the fewest nibbles; the first tensor lies at 0, ``beside`` above it.

    Args:
        in_order: the pixels of the first tensor have to lie row by row.
    """
    start = flow.tensors[flow.start]
    above = round_up(Pixels.of(start).total, WORD) if beside else Pixels.of(start).total
    nibbles = max(above + beside, *(item.peak for item in items), 0)
    first = address_maps.at(start, 0)
    if not in_order and items and start.name in items[0].last and not _beside(items[0], nibbles):
        each, place = Pixels.of(start).each, _deaths(items[0], start.name)
        cells = place[:, None] * each + np.arange(0, each, Pixels.of(start).nibbles_per_element)
        first = address_maps.buffer(start, cells.reshape(start.shape))
    while True:
        try:
            return _place(nibbles, first, above, items)
        except Full:  # only where element widths are mixed
            nibbles += 1


def _place(nibbles: int, start: Buffer, above: int, items: Sequence[Item]) -> Arrangement:
    arena = Cells(nibbles)
    elements: Elements = {start.name: start.addresses(start.box)}
    arena.next = start.extent[1]
    buffers = {start.name: start}
    runs = list[Run | Turn]()
    for n, item in enumerate(items):
        taken = [(elements[name], item.pixels(name)) for name in item.flow.live(item.span.first)]
        arena.only([(cells, pixels.nibbles_per_element) for cells, pixels in taken])
        item, made = _made(arena, item, items[n + 1 : n + 2], elements)
        elements |= made
        tensors = item.flow.tensors
        buffers |= {name: address_maps.buffer(tensors[name], made[name]) for name in made}
        runs += [_run(item, piece, buffers) for piece in item.pieces]
    return Arrangement(nibbles, tuple(buffers.values()), above, tuple(runs))


def _made(
    arena: Cells, item: Item, after: Sequence[Item], elements: Elements
) -> tuple[Item, Elements]:
    """Where what ``item`` makes lies; it may change its order where that does not matter."""
    layer, op = item.layer, item.pieces[-1].op
    if not by_pixel(op, item.flow.tensors):
        for name in op.overwritable(item.flow.tensors):
            if name in item.last:
                return item, {op.output: elements[name].reshape(item.flow.tensors[op.output].shape)}
        if (base := arena.block(item.pixels(op.output))) is not None:  # as its kernels want it
            whole = address_maps.at(item.flow.tensors[op.output], base)
            return item, {op.output: whole.addresses(whole.box)}
    if layer is None:
        return item, _follow(arena, item, elements)
    name, row_major = item.output, item.in_rows()
    readers = [n for n in after if any(name in op.inputs for op in n.flow.of(n.span))]
    following = [each for each in readers if not _beside(each, arena.size)]
    if following and (base := arena.block(layer.outputs)) is not None:
        return row_major, {name: _packed(layer, base, _deaths(following[0], name))}
    if not following and (base := _room(arena, row_major, layer, elements)) is not None:
        return row_major, {name: _packed(layer, base, np.arange(layer.outputs.number))}
    return item, _follow(arena, item, elements)


def _beside(item: Item, nibbles: int) -> bool:
    layer = item.layer
    return layer is not None and fits_beside(layer, nibbles)


def _run(item: Item, piece: Piece, buffers: dict[str, Buffer]) -> Run:
    """A step, the places of its order relative to what it makes."""
    op, tensors = piece.op, item.flow.tensors
    image = len(tensors[op.output].shape) == 3
    each = item.pixels(op.output).channels // item.groups
    channels = piece.group * each, (piece.group + 1) * each
    out: Box = (*piece.made, channels) if image else piece.made[1:]
    (top, _), (left, _) = piece.made
    places = tuple((y - top, x - left, 0) if image else (x - left,) for y, x in piece.order)
    sources = tuple(buffers[name] for name in dict.fromkeys(op.inputs))
    return Run(op, sources, buffers[op.output], ranges(out), places)


def _follow(arena: Cells, item: Item, elements: Elements) -> Elements:
    """Put each output pixel where inputs have died: their cells are free before it is written."""
    tensors, operators = item.flow.tensors, item.flow.of(item.span)
    outputs = [op.output for op in operators]
    held = {name: Places.none(item.pixels(name), item.groups) for name in outputs}
    dying = list[tuple[str, Places, Callable[[Iterable[int]], None], list[int], list[int]]]()
    for name, last in item.last.items():
        pixels, times = item.pixels(name), last.reshape(-1)
        if name not in held:
            held[name] = Places.of(elements[name], pixels, item.groups)
        order = np.argsort(times, kind="stable").tolist()
        ends = np.searchsorted(np.sort(times), np.arange(item.units + 1)).tolist()
        dying.append((name, held[name], held[name].releaser(arena), order, ends))
        dying[-1][2](order[: ends[0]])
    made = list[tuple[tuple[str, ...], Places, Callable[[], int | IntArray]]]()
    for op in operators:
        pixels, places = item.pixels(op.output), held[op.output]
        made.append((op.overwritable(tensors), places, arena.taker(pixels, places.channels)))
    numbers, pixel_of = item.order[:, 0] - item.span.first, _pixels(item)
    for time, (number, pixel) in enumerate(zip(numbers.tolist(), pixel_of.tolist(), strict=True)):
        (over, places, take), kept = made[number], None
        for name, there, release, order, ends in dying:
            begin, end = ends[time], ends[time + 1]
            if begin == end:
                continue
            dead = order[begin:end]
            if over and kept is None and name in over and pixel in dead:
                kept = there.at(pixel)
                dead.remove(pixel)
            release(dead)
        places.put(pixel, take() if kept is None else kept)
    return {name: held[name].cells.reshape(tensors[name].shape) for name in outputs}


def _pixels(item: Item) -> IntArray:
    """Of each unit the number of what it makes among all pixels and groups."""
    columns = [item.pixels(op.output).columns for op in item.flow.of(item.span)]
    number, y, x, group = item.order.T
    each = np.array(columns)[number - item.span.first]
    return np.asarray((y * each + x) * item.groups + group)


def _deaths(item: Item, name: str) -> IntArray:
    """The place of each pixel of ``name`` in the order in which they die.

    An input laid out so leaves free cells in one piece when ``item`` overwrites it.
    """
    number = item.pixels(name).number
    last = item.last[name][..., -1].reshape(-1) if name in item.last else np.zeros(number)
    return np.argsort(np.argsort(last, kind="stable"))


def _packed(layer: Layer, base: int, place: IntArray) -> IntArray:
    """Outputs in one piece from ``base``, pixel n as number ``place[n]``."""
    pixels = layer.outputs
    inside = np.arange(0, pixels.each, pixels.nibbles_per_element)
    return (base + place[:, None] * pixels.each + inside).reshape(layer.target.shape)


def _room(arena: Cells, item: Item, layer: Layer, elements: Elements) -> int | None:
    """The lowest byte from which the outputs can be written row-major in one piece, every cell
    after its input has died."""
    pixels, given, source = layer.outputs, layer.inputs, layer.source.name
    # cell c is free for unit n, from offset n * each on: the base is at most c - n * each
    highest = np.where(arena.free, np.int32(arena.size), np.int32(-1))
    if source in item.last:
        before = (item.last[source].reshape(-1, 1) * pixels.each).astype(np.int32)
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
