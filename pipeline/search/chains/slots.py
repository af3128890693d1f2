"""Layout ``slots``: a static address table. Any output element may take any free nibbles.

No element moves at run time; the next layer reads through the table. The arena is as small as
the most that is ever live, because one free nibble is as good as another: nothing fragments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.graph.tensor import IntArray, Tensor
from pipeline.placement.blocks import WORD, round_up
from pipeline.schedules.traversed import Run, Turn
from pipeline.search.chains import address_maps
from pipeline.search.chains.arrangement import Arrangement, Traversal, fits_beside
from pipeline.search.chains.free_cells import Cells, Full
from pipeline.search.chains.layer import Layer, Pixels
from pipeline.search.chains.liveness import peak_nibbles
from pipeline.search.chains.traversals import Peels, ranks, rows


def arrange(start: Tensor, beside: int, chain: Sequence[Traversal]) -> Arrangement:
    """Lay the chain out in the fewest nibbles; ``start`` lies at 0 and ``beside`` nibbles above."""
    above = round_up(Pixels.of(start).total, WORD) if beside else Pixels.of(start).total
    peaks = [peak_nibbles(layer, ranks(*layer.outputs[:2], peels)) for layer, peels in chain]
    nibbles = max(above + beside, *peaks, 0)
    while True:
        try:
            return _place(nibbles, start, above, chain)
        except Full:  # only where element widths are mixed
            nibbles += 1


def _place(nibbles: int, start: Tensor, above: int, chain: Sequence[Traversal]) -> Arrangement:
    arena = Cells(nibbles)
    arena.next = Pixels.of(start).total
    buffers, runs = [address_maps.at(start, 0)], list[Run | Turn]()
    elements = buffers[0].addresses(start.box)
    for n, (layer, peels) in enumerate(chain):
        following = [item for item in chain[n + 1 : n + 2] if not fits_beside(item[0], nibbles)]
        row_major = rows(*layer.outputs[:2])
        arena.only(elements, layer.inputs.nibbles_per_element)
        if following and (base := arena.block(layer.outputs)) is not None:
            peels, elements = row_major, _packed(layer, base, _deaths(*following[0]))
        elif not following and (base := _room(nibbles, layer, elements)) is not None:
            peels, elements = row_major, _packed(layer, base, np.arange(layer.outputs.number))
        else:
            elements = _follow(arena, layer, peels, elements)
        buffers.append(address_maps.buffer(layer.target, elements))
        order = () if peels == row_major else [p for line in peels for p in line.pixels()]
        runs.append(layer.run(buffers[-2], buffers[-1], layer.outputs.box, order))
    return Arrangement(nibbles, tuple(buffers), above, tuple(runs))


def _follow(arena: Cells, layer: Layer, peels: Peels, elements: IntArray) -> IntArray:
    """Put each output pixel where inputs have died: their cells are free before it is written."""
    pixels, width = layer.outputs, layer.inputs.nibbles_per_element
    last = layer.last_use(ranks(pixels.rows, pixels.columns, peels)).reshape(-1)
    held = elements.reshape(layer.inputs.number, -1)
    bounds = np.searchsorted(np.sort(last), np.arange(pixels.number))
    never, *dying = np.split(np.argsort(last, kind="stable"), bounds)
    arena.release(held[never], width)
    result = np.zeros((pixels.rows, pixels.columns, pixels.channels), dtype=np.int64)
    order = (pixel for line in peels for pixel in line.pixels())
    for pixel, dead in zip(order, dying, strict=True):
        arena.release(held[dead], width)
        result[pixel] = arena.take(pixels)
    return result.reshape(layer.target.shape)


def _deaths(layer: Layer, peels: Peels) -> IntArray:
    """The place of each of ``layer``'s inputs in the order in which they die.

    An input laid out so leaves free cells in one piece when the layer overwrites it.
    """
    last = layer.last_use(ranks(*layer.outputs[:2], peels)).reshape(-1)
    return np.argsort(np.argsort(last, kind="stable"))


def _packed(layer: Layer, base: int, place: IntArray) -> IntArray:
    """Outputs in one piece from ``base``, pixel n as number ``place[n]``."""
    pixels = layer.outputs
    inside = np.arange(0, pixels.each, pixels.nibbles_per_element)
    return (base + place[:, None] * pixels.each + inside).reshape(layer.target.shape)


def _room(nibbles: int, layer: Layer, elements: IntArray) -> int | None:
    """The lowest byte from which the outputs can be written row-major in one piece, every cell
    after its input has died."""
    pixels, width = layer.outputs, layer.inputs.nibbles_per_element
    dies = layer.last_use(ranks(*pixels[:2], rows(*pixels[:2]))).reshape(-1, 1)
    # cell c is free for unit n, from offset n * each on: the base is at most c - n * each
    highest = np.full(nibbles, nibbles)
    taken = elements.reshape(layer.inputs.number, -1, 1) + np.arange(width)
    highest[taken] = taken - dies[..., None] * pixels.each
    base, align = 0, max(2, pixels.nibbles_per_element)
    while base + pixels.total <= nibbles:
        early = np.flatnonzero(highest[base : base + pixels.total] < base)
        if not early.size:
            return base
        base = round_up(base + int(early[-1]) + 1, align)
    return None
