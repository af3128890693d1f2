"""Addressing of a buffer's pixels in generated code.

A pixel is the row of channels at one (y, x); a vector of n elements is one pixel of n channels.
A pixel has a *position*, affine in y and x. In an ``affine`` view the position is the address of
its first nibble; in a ``rows`` view it is ``ROW`` times an index into the flash table ``nn_rows``,
which holds the address of a row's first pixel, plus the column; in a ``table`` view it is an index
into the flash table ``nn_pixels``, which holds the address of the pixel, or the flag ``SCATTERED``
and an index into ``nn_scatter`` if the pixel is scattered.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray
from pipeline.kernels.int4 import NIBBLES, OUT_OF_REACH
from pipeline.plan.vocabulary import Buffer, Rows

SCATTERED = NIBBLES
MOST_SCATTERED = 0x4000
"""Entries of ``nn_scatter``: what assembly reads instead has another flag below this one."""
ROW = 128
"""Columns that a position in a ``rows`` view has room for; the rest of its 16 bits is the row."""


@dataclass(frozen=True)
class View:
    """Pixel (y, x) has position ``base + y * row + x * column`` (modulo 2**16).

    ``pitch``: nibbles from a pixel to the next of its row, where only rows have addresses;
    ``scattered``: some pixels are.
    """

    kind: Literal["affine", "rows", "table"]
    base: int
    row: int
    column: int
    pitch: int = 0
    scattered: bool = False

    def position(self, y: int, x: int) -> int:
        return self.base + y * self.row + x * self.column

    def cell(self, position: str) -> str:
        """C: the first nibble of the pixel, or what ``nn_pixels`` has instead."""
        return cell_at(self.kind, self.pitch, position)

    def element(self, pixel: str, index: str, bits: int) -> str:
        """C: the first nibble of an element of the pixel."""
        return element(pixel, index, bits, self.scattered)


@dataclass
class PixelTables:
    """The flash tables that all views share.

    Attributes:
        pixels: ``nn_pixels``; ``rows``: ``nn_rows``.
        scatter: ``nn_scatter``: addresses of the elements of pixels that are scattered.
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
            self.views[key] = self._view(buffer)
        return self.views[key]

    def address(self, view: View, y: int, x: int) -> int:
        """Return the pixel's first nibble, or SCATTERED and an index."""
        position = view.position(y, x)
        if view.kind == "rows":
            return self.rows[position // ROW] + position % ROW * view.pitch
        return position if view.kind == "affine" else self.pixels[position]

    def _view(self, buffer: Buffer) -> View:
        elements = as_pixels(buffer)
        rows, columns, channels = elements.shape
        firsts, column = elements[:, 0, 0], channels * buffer.nibbles
        if columns > 1:
            column = int(elements[0, 1, 0] - firsts[0])
        x, c = np.ogrid[:columns, :channels]
        if (elements == firsts[:, None, None] + x * column + c * buffer.nibbles).all():
            steps = set(np.diff(firsts).tolist()) or {0}
            if len(steps) == 1:
                return View("affine", int(firsts[0]), steps.pop(), column)
            begin = len(self.rows)
            room = columns <= ROW and begin + rows <= (1 << 16) // ROW
            # a multiplication of bytes has to do
            if isinstance(buffer.map, Rows) and 0 < column < 1 << 8 and room:
                self.rows.extend(firsts.tolist())
                return View("rows", begin * ROW, ROW, 1, column)
        base, whole = len(self.pixels), len(self.scatter)
        for pixel in elements.reshape(rows * columns, channels):
            if (np.diff(pixel) == buffer.nibbles).all():
                self.pixels.append(int(pixel[0]))
            else:
                self.pixels.append(SCATTERED | len(self.scatter))
                self.scatter.extend(int(cell) for cell in pixel)
        if len(self.pixels) >= SCATTERED or len(self.scatter) > MOST_SCATTERED:
            raise ThimbleError(
                f"{buffer.name}: its address table needs more than {SCATTERED} entries, or "
                f"{MOST_SCATTERED} for elements of scattered pixels; try strategy.layout=contiguous"
            )
        return View("table", base, columns, 1, scattered=len(self.scatter) > whole)


def grid(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(rows, columns, channels) of a tensor; a vector is one pixel."""
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 1:
        return 1, 1, shape[0]
    raise ThimbleError(f"generated code handles (h, w, c) and (n,) tensors, not {shape}")


def as_pixels(buffer: Buffer) -> IntArray:
    """Return the first nibble of every element, (rows, columns, channels)."""
    return buffer.addresses(buffer.box).reshape(grid(buffer.shape))


def cell_at(kind: str, pitch: int, position: str) -> str:
    """C: what is known of the pixel at ``position``."""
    if kind == "affine":
        return position
    if kind == "rows":
        return f"nn_in_row({position}, {pitch})"
    return f"nn_flash16(&nn_pixels[{position}])"


def element(pixel: str, index: str, bits: int, scattered: bool) -> str:
    """C: its first nibble; ``scattered``: the pixel may be scattered."""
    nibbles = max(1, bits // 4)
    cell = f"(uint16_t)({pixel} + {f'{nibbles} * ' if nibbles > 1 else ''}{index})"
    apart = f"nn_flash16(&nn_scatter[({pixel} ^ NN_SCATTERED) + {index}])"
    return f"({pixel} & NN_SCATTERED ? {apart} : {cell})" if scattered else cell
