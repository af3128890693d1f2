"""Addressing of a buffer's pixels in generated code.

A pixel is the row of channels at one (y, x); a vector of n elements is one pixel of n channels.
A pixel has a *position*, affine in y and x. In an ``affine`` view the position is the address of
its first nibble; in a ``rows`` view it is ``ROW`` times an index into the flash table ``nn_rows``,
which holds the address of a row's first pixel, plus the column; in a ``table`` view it is an index
into the flash table ``nn_pixels``, which holds the address of the pixel, or the flag ``SCATTERED``
and an index into ``nn_scatter`` if the pixel is torn apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray
from pipeline.kernels.int4 import NIBBLES, OUT_OF_REACH
from pipeline.plan.vocabulary import Affine, Buffer, Rows

SCATTERED = NIBBLES
MOST_TORN = 0x4000
"""Entries of ``nn_scatter``: what assembly reads instead has another flag below this one."""
ROW = 128
"""Columns that a position in a ``rows`` view has room for; the rest of its 16 bits is the row."""


@dataclass(frozen=True)
class View:
    """Pixel (y, x) has position ``base + y * row + x * column`` (modulo 2**16).

    ``pitch``: nibbles from a pixel to the next of its row, where only rows have addresses;
    ``torn``: some pixels are.
    """

    kind: Literal["affine", "rows", "table"]
    base: int
    row: int
    column: int
    pitch: int = 0
    torn: bool = False

    def position(self, y: int, x: int) -> int:
        return self.base + y * self.row + x * self.column

    def cell(self, position: str) -> str:
        """C: the first nibble of the pixel, or what ``nn_pixels`` has instead."""
        return cell_at(self.kind, self.pitch, position)

    def element(self, pixel: str, index: str, bits: int) -> str:
        """C: the first nibble of an element of the pixel."""
        return element(pixel, index, bits, self.torn)


@dataclass
class PixelTables:
    """The flash tables that all views share.

    Attributes:
        pixels: ``nn_pixels``; ``rows``: ``nn_rows``.
        scatter: ``nn_scatter``: addresses of the elements of pixels that are torn apart.
    """

    pixels: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    scatter: list[int] = field(default_factory=list)
    views: dict[tuple[str, tuple[int, int]], View] = field(default_factory=dict)

    def view(self, buffer: Buffer) -> View:
        if buffer.extent[1] > NIBBLES:
            raise ThimbleError(f"{buffer.name}: {OUT_OF_REACH}")
        key = buffer.name, buffer.extent
        if key not in self.views:
            self.views[key] = _affine(buffer) or self._table(buffer)
        return self.views[key]

    def address(self, view: View, y: int, x: int) -> int:
        """The pixel's first nibble, or SCATTERED and an index."""
        position = view.position(y, x)
        if view.kind == "rows":
            return self.rows[position // ROW] + position % ROW * view.pitch
        return position if view.kind == "affine" else self.pixels[position]

    def _table(self, buffer: Buffer) -> View:
        elements = as_pixels(buffer)
        fitted = _fit(elements, buffer.nibbles)
        if fitted is not None:
            return fitted
        rows, columns, channels = elements.shape
        pitch = _pitch(buffer)
        if pitch and columns <= ROW and len(self.rows) + rows <= (1 << 16) // ROW:
            first = len(self.rows)
            self.rows.extend(int(cell) for cell in elements[:, 0, 0])
            return View("rows", first * ROW, ROW, 1, pitch)
        base, whole = len(self.pixels), len(self.scatter)
        for pixel in elements.reshape(rows * columns, channels):
            if (np.diff(pixel) == buffer.nibbles).all():
                self.pixels.append(int(pixel[0]))
            else:
                self.pixels.append(SCATTERED | len(self.scatter))
                self.scatter.extend(int(cell) for cell in pixel)
        if len(self.pixels) >= SCATTERED or len(self.scatter) > MOST_TORN:
            raise ThimbleError(
                f"{buffer.name}: its address table needs more than {SCATTERED} entries, or "
                f"{MOST_TORN} for elements of torn pixels; try strategy.layout=contiguous"
            )
        return View("table", base, columns, 1, torn=len(self.scatter) > whole)


def grid(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(rows, columns, channels) of a tensor; a vector is one pixel."""
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 1:
        return 1, 1, shape[0]
    raise ThimbleError(f"generated code handles (h, w, c) and (n,) tensors, not {shape}")


def as_pixels(buffer: Buffer) -> IntArray:
    """The first nibble of every element, (rows, columns, channels)."""
    return buffer.addresses(buffer.box).reshape(grid(buffer.shape))


def cell_at(kind: str, pitch: int, position: str) -> str:
    """C: what is known of the pixel at ``position``."""
    if kind == "affine":
        return position
    if kind == "rows":
        return f"nn_in_row({position}, {pitch})"
    return f"nn_flash16(&nn_pixels[{position}])"


def element(pixel: str, index: str, bits: int, scattered: bool) -> str:
    """C: its first nibble; ``scattered``: the pixel may be torn apart."""
    nibbles = max(1, bits // 4)
    cell = f"(uint16_t)({pixel} + {f'{nibbles} * ' if nibbles > 1 else ''}{index})"
    torn = f"nn_flash16(&nn_scatter[({pixel} ^ NN_SCATTERED) + {index}])"
    return f"({pixel} & NN_SCATTERED ? {torn} : {cell})" if scattered else cell


def _pitch(buffer: Buffer) -> int:
    """Nibbles from a pixel to the next where each row is one piece, whose pixels are whole; else 0.
    A multiplication of bytes has to do."""
    place = buffer.map
    if not isinstance(place, Rows) or len(place.strides) != 2:
        return 0
    column, inner = place.strides
    whole = grid(buffer.shape)[2] == 1 or inner == buffer.nibbles
    return column if whole and 0 < column < 1 << 8 else 0


def _affine(buffer: Buffer) -> View | None:
    """Straight from an affine map without a ring whose channels lie side by side."""
    if not isinstance(buffer.map, Affine) or any(buffer.map.wrap):
        return None
    *outer, inner = buffer.map.strides
    if inner != buffer.nibbles and grid(buffer.shape)[2] > 1:
        return None
    row, column = outer if outer else (0, 0)
    return View("affine", buffer.map.base, row, column)


def _fit(elements: IntArray, nibbles: int) -> View | None:
    """An affine view of a table, if there is one."""
    rows, columns, channels = elements.shape
    base = int(elements[0, 0, 0])
    row = int(elements[1, 0, 0]) - base if rows > 1 else 0
    column = int(elements[0, 1, 0]) - base if columns > 1 else 0
    y, x, c = np.ogrid[:rows, :columns, :channels]
    fits = bool((elements == base + y * row + x * column + c * nibbles).all())
    return View("affine", base, row, column) if fits else None
