"""SwapNN's tiles: square, with halo, every one strictly smaller than a buffer (its section 3.2).

An input tile is the part of the source that a square of the target reads; weight tiles do not
depend on it, and are read again for each input tile. So a layer has ``inputs * (2 + weights)`` IO
tasks: its input tiles, the weight tiles for each of them, and the output tiles. The rule says how
many tiles there are; where they lie is this project's: boxes of equal size.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile
from math import prod
from typing import NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import Box
from pipeline.search.view.tiles import Rows, TiledLayer

FINEST = 600
"""The most tiles that share rows of weights."""


class WeightTile(NamedTuple):
    """Output channels ``rows`` of the weights; and of channels ``shared`` the part ``columns`` of
    their last axis: other tiles hold the rest of these."""

    rows: Rows
    shared: Rows
    columns: Rows

    @property
    def kind(self) -> str:
        """Tiles of one kind fit one window: those of whole rows, or with as many rows and shares of
        rows."""
        own, high = longest([self.rows]), longest([self.shared])
        return f"{own}_{high}" if high else ""


@dataclass(frozen=True)
class Tiling:
    """The cut of a layer into tiles.

    Attributes:
        rows, columns: of the target, for each place of the grid.
        parts: of the source's channels, where its smallest tile does not fit a buffer.
        weights: number of weight tiles for each input tile; 0 without weights.
        window: rows and columns of an input tile; all of one size, so that some reach further than
            what is computed from them.
    """

    layer: TiledLayer
    buffer_bytes: int
    rows: Box
    columns: Box
    parts: Box
    weights: int
    window: tuple[int, ...]

    def read(self, row: int, column: int, part: int) -> Box:
        """Return the ranges of the source that the input tile holds."""
        source, made = self.layer.sources[0], (self.rows[row], self.columns[column])
        if source.windows is None:
            return (*((0, extent) for extent in self.window), self.parts[part])
        places = zip(source.windows, made, self.window, source.shape, strict=False)
        lows = [max(0, min(w.span(*out)[0], extent - size)) for w, out, size, extent in places]
        held = ((low, low + size) for low, size in zip(lows, self.window, strict=True))
        return (*held, self.parts[part])

    @cached_property
    def summed(self) -> bool:
        """Input tiles are parts of what an output element is made of."""
        return len(self.parts) > 1 and not self.layer.channelwise

    @property
    def sums(self) -> int:
        """Accumulators that an output tile needs at once."""
        shared = longest(tile.shared for tile in self.weight_tiles)
        pixels = longest(self.rows) * longest(self.columns)
        return pixels * (self.layer.channels if self.summed else shared)

    @cached_property
    def weight_tiles(self) -> tuple[WeightTile, ...]:
        """In the order in which they are read.

        Raises:
            ThimbleError: when the weights of an output channel need more room than there is.
        """
        tiles, start = list[WeightTile](), 0
        for rows, number in self._groups() if self.weights else ():
            own, end = rows // number, start + rows
            for n, columns in enumerate(even(self.depth, number)):
                first = start + n * own
                tiles.append(WeightTile((first, first + own), (start + own * number, end), columns))
            start = end
        return tuple(tiles)

    @property
    def depth(self) -> int:
        """Count the weights along the last axis that are needed for an input tile."""
        return 1 if self.layer.channelwise else longest(self.parts)

    def _groups(self) -> list[tuple[int, int]]:
        """So many rows of weights make so many tiles: one whole rows, or several pieces of one row;
        or, where neither gives the rule's number, rows that they share."""
        layer, room, number, depth = self.layer, self.buffer_bytes, self.weights, self.depth
        column = layer.row_bytes // (1 if layer.channelwise else layer.sources[0].shape[-1])
        channels, row = layer.channels, column * depth

        def fits(rows: int, tiles: int) -> bool:
            whole, shared = divmod(rows, tiles)
            return whole * row + shared * -(-depth // tiles) * column <= room

        def alike(groups: int) -> list[tuple[int, int]]:
            sizes = [stop - start for start, stop in even(channels, groups)]
            return [(n, number // groups + (k < number % groups)) for k, n in enumerate(sizes)]

        found = alike(min(channels, number))
        if all(fits(*each) for each in found):
            return found
        for sharing in range(2, min(FINEST, number, depth) + 1):
            most = range(sharing * room // row, 0, -1)
            period = next((n for n in most if fits(n, sharing)), channels)
            periods = min(channels // period, (number - 1) // sharing)
            left, tiles = channels - periods * period, number - periods * sharing
            if left and tiles <= depth and fits(left, tiles):
                return [(period, sharing)] * periods + [(left, tiles)]
        if row > room:
            raise ThimbleError(
                f"{layer.name}: {number} weight tiles of less than {room} B cannot be cut; try "
                "another strategy.buffer_bytes"
            )
        return [(stop - start, 1) for start, stop in even(channels, -(-channels // (room // row)))]


def tiling(layer: TiledLayer, buffer_bytes: int) -> Tiling:
    """
    Raises:
        ThimbleError: when the smallest output tile, one pixel, is as large as a buffer.
    """
    source, limit = layer.sources[0], buffer_bytes - 1
    *extents, depth = source.shape
    rows, columns, channels = layer.shape
    if limit < channels:
        raise ThimbleError(
            f"{layer.name}: one pixel of {layer.target} has {channels} B, but tiles are "
            f"smaller than strategy.buffer_bytes={buffer_bytes}; try larger buffers"
        )

    def fits(side: int) -> bool:
        return max(prod(source.reads(side, side)) * depth, side * side * channels) <= limit

    side = max(takewhile(fits, range(1, max(rows, columns) + 1)), default=1)
    high, wide = -(-rows // side), -(-columns // side)
    parts = -(-prod(source.reads(1, 1)) * depth // limit)
    made = even(rows, high), even(columns, wide), even(depth, min(parts, depth))
    window = tuple(map(min, source.reads(side, side), extents))
    weights = -(-layer.weight_bytes // limit)
    return Tiling(layer, buffer_bytes, *made, weights, window)


def longest(ranges: Iterable[Rows]) -> int:
    return max((stop - start for start, stop in ranges), default=0)


def even(extent: int, number: int) -> Box:
    """``number`` ranges: all of one size but for the last where that comes out, else of sizes that
    differ by one, the longer ones first."""
    size = -(-extent // number)
    if -(-extent // size) == number:
        return tuple((n * size, min(n * size + size, extent)) for n in range(number))
    size, more = divmod(extent, number)
    ends = [n * size + min(n, more) for n in range(number + 1)]
    return tuple(pairwise(ends))
