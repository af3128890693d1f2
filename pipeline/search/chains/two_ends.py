"""How small an arena the paper's layout can do with, and its two ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray, Tensor
from pipeline.plan.vocabulary import Affine, Buffer
from pipeline.search.chains import address_maps
from pipeline.search.chains.layer import Layer, PixelBox, Pixels
from pipeline.search.chains.traversals import Peels, ranks


@dataclass(frozen=True)
class Ends:
    """Real places of what is described with inputs at the top, dying from the top left on.

    ``mirrored`` exchanges the ends of the arena and turns every image by 180 degrees; the channels
    of a pixel keep their order.
    """

    nibbles: int
    mirrored: bool

    def strided(self, name: str, tensor: Tensor, base: int, row: int, column: int) -> Buffer:
        """Pixel (y, x) at ``base + y * row + x * column``."""
        pixels = Pixels.of(tensor)
        if self.mirrored:
            ahead = (pixels.rows - 1) * row + (pixels.columns - 1) * column
            base = self.nibbles - pixels.each - base - ahead
        vector = len(tensor.shape) == 1
        strides = (column,) if vector else (row, column, pixels.nibbles_per_element)
        address = Affine(base, strides)
        return Buffer(name, tensor.name, "", tensor.shape, tensor.dtype.bits, address)

    def table(self, name: str, tensor: Tensor, bases: IntArray) -> Buffer:
        """Pixel (y, x) at ``bases[y, x]``."""
        pixels = Pixels.of(tensor)
        if self.mirrored:
            bases = np.flip(self.nibbles - pixels.each - bases)
        inside = np.arange(0, pixels.each, pixels.nibbles_per_element)
        return address_maps.buffer(tensor, (bases[..., None] + inside).reshape(tensor.shape), name)

    def box(self, pixels: Pixels, box: PixelBox) -> PixelBox:
        if not self.mirrored:
            return box
        (top, bottom), (left, right) = box
        return (
            (pixels.rows - bottom, pixels.rows - top),
            (pixels.columns - right, pixels.columns - left),
        )


def needed_nibbles(layer: Layer, peels: Peels, mirrored: bool = False) -> int:
    """The smallest arena: outputs never reach the lowest input that is still to be read.

    A pixel's outputs are written while the inputs that die with it still count (section 3.2).
    """
    order = ranks(layer.outputs.rows, layer.outputs.columns, peels)
    axes = {line.axis for line in peels}
    if len(axes) == 2:
        dead = _dead_peeling(layer, peels)
    else:
        last = layer.last_use(np.flip(order)) if mirrored else layer.last_use(order)
        last = np.flip(last) if mirrored else last
        last = last.T if axes == {"column"} else last  # the input lies as it is gone through
        held = np.maximum.accumulate(last.reshape(-1))
        dead = np.searchsorted(held, np.arange(layer.outputs.number))
    written = np.arange(1, layer.outputs.number + 1) * layer.outputs.each
    return int((written - dead * layer.inputs.each).max()) + layer.inputs.total


def _dead_peeling(layer: Layer, peels: Peels) -> IntArray:
    """Dead input pixels below the lowest live one, before each output of a peelable layer dies.

    The rest of the input is a rectangle, kept in the direction of the peel: every pixel of the peel
    kills the next one of its side.
    """
    height, width = layer.inputs.rows, layer.inputs.columns
    dead = list[int]()
    for line in peels:
        gone = layer.inputs.number - height * width
        dead.extend(range(gone, gone + len(line)))
        height, width = (height - 1, width) if line.axis == "row" else (height, width - 1)
    return np.array(dead)
