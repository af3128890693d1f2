"""Layout ``slots``: a static address table. Any output element may take any free nibbles.

No element moves at run time; the next layer reads through the table. The arena is as small as
the most that is ever live, because one free nibble is as good as another: nothing fragments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.graph.tensor import Box, IntArray, Tensor
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

Elements = dict[str, IntArray]
"""Where each tensor's elements lie, each of the tensor's shape."""


def arrange(flow: Flow, beside: int, items: Sequence[Item]) -> Arrangement:
    """Lay ``items`` out in the fewest nibbles; the first tensor lies at 0, ``beside`` above it."""
    start = flow.tensors[flow.start]
    above = round_up(Pixels.of(start).total, WORD) if beside else Pixels.of(start).total
    nibbles = max(above + beside, *(item.peak for item in items), 0)
    while True:
        try:
            return _place(nibbles, start, above, items)
        except Full:  # only where element widths are mixed
            nibbles += 1


def _place(nibbles: int, start: Tensor, above: int, items: Sequence[Item]) -> Arrangement:
    arena = Cells(nibbles)
    arena.next = Pixels.of(start).total
    buffers = {start.name: address_maps.at(start, 0)}
    elements: Elements = {start.name: buffers[start.name].addresses(start.box)}
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
    if not by_pixel(op):
        for name in op.overwritable(item.flow.tensors):
            if name in item.last:
                return item, {op.output: elements[name].reshape(item.flow.tensors[op.output].shape)}
    if layer is None:
        return item, _follow(arena, item, elements)
    name, row_major = item.output, item.in_rows()
    following = [each for each in after if _reads(each, name) and not _beside(each, arena.size)]
    if following and (base := arena.block(layer.outputs)) is not None:
        return row_major, {name: _packed(layer, base, _deaths(following[0], name))}
    if not following and (base := _room(arena, row_major, layer, elements)) is not None:
        return row_major, {name: _packed(layer, base, np.arange(layer.outputs.number))}
    return item, _follow(arena, item, elements)


def _reads(item: Item, name: str) -> bool:
    return any(name in op.inputs for op in item.flow.of(item.span))


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
    made, held = dict[str, IntArray](), dict[str, IntArray]()
    tensors, groups = item.flow.tensors, item.groups
    for op in item.flow.of(item.span):
        pixels = item.pixels(op.output)
        made[op.output] = np.zeros((pixels.rows, pixels.columns, pixels.channels), dtype=np.int64)
    dying = dict[str, list[IntArray]]()
    for name, last in item.last.items():
        pixels = item.pixels(name)
        cells = made[name] if name in made else elements[name]
        held[name] = cells.reshape(pixels.number * groups, -1)  # a view: filled as it is made
        order = np.argsort(last.reshape(-1), kind="stable")
        bounds = np.searchsorted(np.sort(last.reshape(-1)), np.arange(item.units + 1))
        never, *dying[name], _ = np.split(order, bounds)
        arena.release(held[name][never], pixels.nibbles_per_element)
    time = 0
    for piece in item.pieces:
        pixels = item.pixels(piece.op.output)
        unit = pixels._replace(channels=pixels.channels // groups)
        channels = slice(piece.group * unit.channels, (piece.group + 1) * unit.channels)
        over = piece.op.overwritable(tensors)
        for y, x in piece.pixels():
            kept = None
            for name, dead in dying.items():
                if kept is None and name in over and y * pixels.columns + x in dead[time]:
                    kept = held[name][y * pixels.columns + x]
                arena.release(held[name][dead[time]], item.pixels(name).nibbles_per_element)
            if kept is not None:
                arena.claim(kept, unit.nibbles_per_element)
            made[piece.op.output][y, x, channels] = arena.take(unit) if kept is None else kept
            time += 1
    return {name: cells.reshape(tensors[name].shape) for name, cells in made.items()}


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
    pixels, width, source = layer.outputs, layer.inputs.nibbles_per_element, layer.source.name
    # cell c is free for unit n, from offset n * each on: the base is at most c - n * each
    highest = np.where(arena.free, arena.size, -1)
    if source in item.last:
        dies = item.last[source].reshape(-1, 1)
        taken = elements[source].reshape(layer.inputs.number, -1, 1) + np.arange(width)
        highest[taken] = taken - dies[..., None] * pixels.each
    base, align = 0, max(2, pixels.nibbles_per_element)
    while base + pixels.total <= arena.size:
        early = np.flatnonzero(highest[base : base + pixels.total] < base)
        if not early.size:
            return base
        base = round_up(base + int(early[-1]) + 1, align)
    return None
