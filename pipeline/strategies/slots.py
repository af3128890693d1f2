"""Layout ``slots``: a static address table. Any output element may take any free nibbles.

No element moves at run time; the next layer reads through the table. The arena is as small as
the most that is ever live, because one free nibble is as good as another: nothing fragments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.graph.tensor import IntArray, Tensor
from pipeline.plan.vocabulary import Buffer, Step
from pipeline.strategies import maps
from pipeline.strategies.arrangement import WORD, Arrangement, Traversal, fits_beside, round_up
from pipeline.strategies.cells import Cells, Full
from pipeline.strategies.layer import Layer, Pixels
from pipeline.strategies.liveness import peak_nibbles
from pipeline.strategies.peels import Peels, ranks, rows


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
    buffers, steps = [maps.at(start, 0)], list[Step]()
    elements = buffers[0].addresses(start.box)
    arena.next = Pixels.of(start).total
    for n, (layer, peels) in enumerate(chain):
        arena.only(elements, layer.inputs.nibbles_per_element)
        block = arena.block(layer.outputs)
        if block is None:
            elements = _follow(arena, layer, peels, elements)
        else:
            elements, peels = _pack(block, layer, chain[n + 1 :], nibbles), rows(*layer.outputs[:2])
        buffers.append(maps.buffer(layer.target, elements))
        steps.append(compute_all(layer, buffers[-2], buffers[-1], peels))
    return Arrangement(nibbles, tuple(buffers), above, tuple(steps), buffers[-1].name)


def compute_all(layer: Layer, source: Buffer, target: Buffer, peels: Peels) -> Step:
    """The whole layer in one step."""
    box = layer.outputs.box
    order = (pixel for line in peels for pixel in line.pixels())
    return layer.compute(
        source, target, box, () if peels == rows(*layer.outputs[:2]) else tuple(order)
    )


def _follow(arena: Cells, layer: Layer, peels: Peels, elements: IntArray) -> IntArray:
    """Put each output pixel where inputs have died: their cells are free before it is written."""
    pixels, width = layer.outputs, layer.inputs.nibbles_per_element
    last = layer.last_use(ranks(pixels.rows, pixels.columns, peels)).reshape(-1)
    held = elements.reshape(layer.inputs.number, -1)
    dying = np.split(
        np.argsort(last, kind="stable"), np.searchsorted(np.sort(last), range(pixels.number))
    )
    arena.release(held[dying[0]], width)
    result = np.zeros((pixels.rows, pixels.columns, pixels.channels), dtype=np.int64)
    order = (pixel for line in peels for pixel in line.pixels())
    for pixel, dead in zip(order, dying[1:], strict=True):
        arena.release(held[dead], width)
        result[pixel] = arena.take(pixels)
    return result.reshape(layer.target.shape)


def _pack(base: int, layer: Layer, rest: Sequence[Traversal], nibbles: int) -> IntArray:
    """One piece from ``base``: row-major, or, if the next layer has to overwrite it, in the order
    in which that layer lets its pixels die, so that what gets free is in one piece too."""
    pixels = layer.outputs
    place = np.arange(pixels.number)
    if rest and not fits_beside(rest[0][0], nibbles):
        following, peels = rest[0]
        last = following.last_use(ranks(*following.outputs[:2], peels)).reshape(-1)
        place[np.argsort(last, kind="stable")] = np.arange(pixels.number)
    width = pixels.nibbles_per_element
    elements = base + place[:, None] * pixels.each + np.arange(0, pixels.each, width)
    return elements.reshape(layer.target.shape)
