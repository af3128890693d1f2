"""SwapNN's tiles: square, with halo, every one strictly smaller than a buffer (its section 3.2).

An input tile is the part of the source that a square of the target reads; weight tiles do not
depend on it, and are read again for each input tile. So a layer has ``inputs * (2 + weights)`` IO
tasks: its input tiles, the weight tiles for each of them, and the output tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.errors import ThimbleError
from pipeline.search.swap.layers import TiledLayer


@dataclass(frozen=True)
class Tiling:
    """How a layer is cut.

    Attributes:
        side: rows and columns of an output tile; 0 where not even a pixel's inputs fit a buffer.
        grid: output tiles along rows and columns.
        parts: along the channels of the source, where its smallest tile does not fit a buffer.
        weights: weight tiles; 0 without weights.
    """

    layer: TiledLayer
    buffer_bytes: int
    side: int
    grid: tuple[int, int]
    parts: int
    weights: int

    @property
    def inputs(self) -> int:
        return prod(self.grid) * self.parts

    @property
    def io_tasks(self) -> int:
        return self.inputs * (2 + self.weights)

    @property
    def compute_tasks(self) -> int:
        return self.inputs * max(1, self.weights)


def tiling(layer: TiledLayer, buffer_bytes: int) -> Tiling:
    """
    Raises:
        ThimbleError: when the smallest output tile, one pixel, is as large as a buffer.
    """
    limit = buffer_bytes - 1
    if limit < layer.channels:
        raise ThimbleError(
            f"{layer.name}: one pixel of {layer.target} has {layer.channels} B, but tiles are "
            f"smaller than strategy.buffer_bytes={buffer_bytes}; try larger buffers"
        )
    weights = -(-layer.weight_bytes // limit)
    if layer.windows is None:
        parts = -(-layer.source_bytes // limit)
        return Tiling(layer, buffer_bytes, 1, (1, 1), parts, weights)
    rows, columns, channels = layer.shape
    depth = layer.source_shape[2]
    side = 0
    while side < max(rows, columns):
        more = side + 1
        if prod(layer.reads(more, more)) * depth > limit or more * more * channels > limit:
            break
        side = more
    if side:
        grid = -(-rows // side), -(-columns // side)
        return Tiling(layer, buffer_bytes, side, grid, 1, weights)
    parts = -(-prod(layer.reads(1, 1)) * depth // limit)
    return Tiling(layer, buffer_bytes, 0, (rows, columns), parts, weights)


def tilings(layers: tuple[TiledLayer, ...], buffer_bytes: int) -> tuple[Tiling, ...]:
    return tuple(tiling(layer, buffer_bytes) for layer in layers)
