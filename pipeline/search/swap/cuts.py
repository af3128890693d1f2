"""Where SwapNN's tiles lie: boxes of equal size whose number is the rule's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.schedules.bounds import reach
from pipeline.search.swap.tiles import Tiling

Range = tuple[int, int]
FINEST = 600
"""The most tiles that share rows of weights."""


@dataclass(frozen=True)
class WeightTile:
    """Output channels ``rows`` of the weights; and of channels ``shared`` the part ``columns`` of
    their last axis. A tile that ``opens`` is the first with its shared rows, one that ``closes``
    the last: the others hold the rest of these rows. Tiles of one ``period`` are alike in size."""

    rows: Range
    shared: Range = (0, 0)
    columns: Range = (0, 0)
    opens: bool = False
    closes: bool = False
    period: int = 0


@dataclass(frozen=True)
class Cut:
    """Tiles of one layer.

    Attributes:
        rows, columns: of the target, for each place of the grid.
        window: rows and columns of an input tile; all of one size, so that some reach further than
            what is computed from them; 0 for a dense layer.
        parts: of the source's channels.
        weights: in the order in which they are read; empty without weights.
    """

    tiling: Tiling
    rows: tuple[Range, ...]
    columns: tuple[Range, ...]
    window: tuple[int, int]
    parts: tuple[Range, ...]
    weights: tuple[WeightTile, ...]

    @property
    def computes(self) -> int:
        """Compute tasks."""
        tiles = len(self.rows) * len(self.columns) * len(self.parts)
        return tiles * max(1, len(self.weights))

    def read(self, row: int, column: int) -> tuple[Range, Range]:
        """Rows and columns of the source that the input tile holds."""
        layer = self.tiling.layer
        assert layer.windows is not None
        places = zip(layer.windows, (self.rows[row], self.columns[column]), self.window,
                     layer.source_shape, strict=False)  # fmt: skip
        high, wide = (_inside(*place) for place in places)
        return high, wide


def _inside(window: Window, out: Range, size: int, extent: int) -> Range:
    first, _ = reach(window, out[0], out[1] - out[0]).ends
    low = max(0, min(first, extent - size))
    return low, low + size


def cut(tiling: Tiling) -> Cut:
    """
    Raises:
        ThimbleError: when the weights of an output channel need more room than there is.
    """
    layer = tiling.layer
    window = (0, 0)
    rows, columns = (even(layer.shape[d], tiling.grid[d]) for d in (0, 1))
    if layer.windows is not None:
        side = max(1, tiling.side)
        reach = layer.reads(side, side)
        window = min(reach[0], layer.source_shape[0]), min(reach[1], layer.source_shape[1])
    parts = even(layer.source_shape[-1], min(tiling.parts, layer.source_shape[-1]))
    sides = window if layer.windows else layer.source_shape[:-1]
    needed = prod(sides) * (parts[0][1] - parts[0][0])
    if needed > tiling.buffer_bytes:
        raise ThimbleError(
            f"{layer.name}: {needed} B of {layer.source} are read at once; "
            f"strategy.buffer_bytes={tiling.buffer_bytes} is too small: use strategy.scheduler=best"
        )
    return Cut(tiling, rows, columns, window, parts, tuple(_weights(tiling, parts)))


def even(extent: int, number: int) -> tuple[Range, ...]:
    """``number`` ranges: all of one size but for the last where that comes out, else of sizes that
    differ by one, the longer ones first."""
    size = -(-extent // number)
    if -(-extent // size) == number:
        return tuple((n * size, min(n * size + size, extent)) for n in range(number))
    size, more = divmod(extent, number)
    ends = [n * size + min(n, more) for n in range(number + 1)]
    return tuple(pairwise(ends))


def _weights(tiling: Tiling, parts: tuple[Range, ...]) -> Iterator[WeightTile]:
    layer, number = tiling.layer, tiling.weights
    room = tiling.buffer_bytes
    if not number:
        return
    if number <= layer.channels:
        rows = even(layer.channels, number)
        if (rows[0][1] - rows[0][0]) * layer.row_bytes <= room:
            yield from (WeightTile(each) for each in rows)
            return
    depth = max(stop - start for start, stop in parts)
    row = layer.row_bytes // layer.source_shape[-1] * depth
    pieces, more = divmod(number, layer.channels)
    if pieces and -(-depth // pieces) * (row // depth) <= room:
        for n in range(layer.channels):
            yield from _alone(n, pieces + (n < more), depth)
        return
    for sharing in range(2, min(FINEST, number, depth) + 1):
        sizes = _shared(layer.channels, number, row, depth, sharing, room)
        if sizes:
            yield from _periods(layer.channels, number, depth, sharing, sizes)
            return
    whole = room // row
    if not whole:
        raise ThimbleError(
            f"{layer.name}: {number} weight tiles of less than {room} B cannot be cut; try another "
            "strategy.buffer_bytes"
        )
    yield from (WeightTile(each) for each in even(layer.channels, -(-layer.channels // whole)))


def _alone(row: int, pieces: int, depth: int) -> Iterator[WeightTile]:
    if pieces == 1:
        yield WeightTile((row, row + 1), period=1)
        return
    for n, columns in enumerate(even(depth, pieces)):
        yield WeightTile((row, row), (row, row + 1), columns, n == 0, n == pieces - 1)


def _fits(rows: int, tiles: int, row: int, depth: int, room: int) -> bool:
    whole, shared = divmod(rows, tiles)
    return tiles <= depth and whole * row + shared * -(-depth // tiles) * (row // depth) <= room


def _shared(
    channels: int, number: int, row: int, depth: int, sharing: int, room: int
) -> int:  # fmt: skip
    """Rows of a period of ``sharing`` tiles such that all rows make ``number`` tiles; 0: none."""
    period = sharing * room // row
    while period and not _fits(period, sharing, row, depth, room):
        period -= 1
    if not period:
        return 0
    periods = min(channels // period, (number - 1) // sharing)
    left, tiles = channels - periods * period, number - periods * sharing
    if not left:
        return period if not tiles else 0
    return period if tiles > 0 and _fits(left, tiles, row, depth, room) else 0


def _periods(
    channels: int, number: int, depth: int, sharing: int, period: int
) -> Iterator[WeightTile]:
    """Periods of ``sharing`` tiles, and one of what is left."""
    periods = min(channels // period, (number - 1) // sharing)
    sizes = [(period, sharing)] * periods
    if channels > periods * period:
        sizes.append((channels - periods * period, number - periods * sharing))
    start = 0
    for size, tiles in sizes:
        rows = size // tiles
        rest = (start + rows * tiles, start + size)
        for n, columns in enumerate(even(depth, tiles)):
            first = start + n * rows
            ends = n == 0, n == tiles - 1
            yield WeightTile((first, first + rows), rest, columns, *ends, int(size < period))
        start += size


def sums(cut: Cut) -> int:
    """Accumulators that an output tile needs at once."""
    side = prod(max(b - a for a, b in axis) for axis in (cut.rows, cut.columns))
    if len(cut.parts) > 1 and not cut.tiling.layer.channelwise:
        return side * cut.tiling.layer.channels
    return side * max((b - a for a, b in (tile.shared for tile in cut.weights)), default=0)
