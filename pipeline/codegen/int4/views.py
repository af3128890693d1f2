"""How generated code finds the pixels of a buffer.

A pixel is the row of channels at one (y, x); a vector of n elements is one pixel of n channels.
A pixel has a *position*, affine in y and x. In an ``affine`` view the position is the address of
its first nibble; in a ``table`` view it is an index into the flash table ``nn_pixels``, which holds
that address, or the flag ``SCATTERED`` and an index into ``nn_scatter`` if the pixel is torn apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Affine, Buffer

SCATTERED = 0x8000
"""Also the limit of addresses: an arena of 16 KiB."""


@dataclass(frozen=True)
class View:
    """Pixel (y, x) has position ``base + y * row + x * column`` (modulo 2**16)."""

    kind: Literal["affine", "table"]
    base: int
    row: int
    column: int

    def position(self, y: int, x: int) -> int:
        return self.base + y * self.row + x * self.column


@dataclass
class PixelTables:
    """The flash tables that all views share.

    Attributes:
        pixels: ``nn_pixels``.
        scatter: ``nn_scatter``: addresses of the elements of pixels that are torn apart.
    """

    pixels: list[int] = field(default_factory=list)
    scatter: list[int] = field(default_factory=list)
    views: dict[tuple[str, tuple[int, int]], View] = field(default_factory=dict)

    def view(self, buffer: Buffer) -> View:
        if buffer.extent[1] > SCATTERED:
            raise ThimbleError(
                f"{buffer.name}: kernels of 4-bit networks address an arena of 16 KiB, this ends "
                f"at byte {-(-buffer.extent[1] // 2):,}"
            )
        key = buffer.name, buffer.extent
        if key not in self.views:
            self.views[key] = _affine(buffer) or self._table(buffer)
        return self.views[key]

    def address(self, view: View, y: int, x: int) -> int:
        """The pixel's first nibble, or SCATTERED and an index."""
        position = view.position(y, x)
        return position if view.kind == "affine" else self.pixels[position]

    def _table(self, buffer: Buffer) -> View:
        elements = as_pixels(buffer)
        fitted = _fit(elements, buffer.nibbles)
        if fitted is not None:
            return fitted
        rows, columns, channels = elements.shape
        base = len(self.pixels)
        for pixel in elements.reshape(rows * columns, channels):
            if (np.diff(pixel) == buffer.nibbles).all():
                self.pixels.append(int(pixel[0]))
            else:
                self.pixels.append(SCATTERED | len(self.scatter))
                self.scatter.extend(int(cell) for cell in pixel)
        if max(len(self.pixels), len(self.scatter)) >= SCATTERED:
            raise ThimbleError(
                f"{buffer.name}: its address table needs more than {SCATTERED} entries; "
                "try strategy.layout=contiguous"
            )
        return View("table", base, columns, 1)


def grid(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(rows, columns, channels) of a tensor; a vector is one pixel."""
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 1:
        return 1, 1, shape[0]
    raise ThimbleError(f"generated code handles (h, w, c) and (n,) tensors, not {shape}")


def as_pixels(buffer: Buffer) -> IntArray:
    """The first nibble of every element, (rows, columns, channels)."""
    elements = np.broadcast_to(buffer.addresses(buffer.box), buffer.shape)
    return elements.reshape(grid(buffer.shape))


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
