"""Pieces of a chain of layers that run row by row, and what each needs and takes.

A segment makes ``chunk`` rows of its last target at a time. Each layer in it computes the rows that
are needed and not there yet, from a ring of rows of the layer before: nothing is computed twice, no
tensor between its layers is ever whole. Its source comes from the card row by row, or lies in SRAM;
its target goes either way. All its weights lie in SRAM, but those of one layer may be streamed, in
tiles of output channels, for each chunk again. So a chunk of one row is weight-stationary, and one
of all rows input-stationary: every weight is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pipeline.plan.rates import Rates
from pipeline.schedules.bounds import reach
from pipeline.search.swap.layers import TiledLayer

Place = Literal["kept", "stored"]
"""In memory, whole; or on the card."""

Rows = tuple[int, int]


def aligned(size: int) -> int:
    return -(-size // 16) * 16


def extent(layer: TiledLayer, source: bool) -> int:
    """Rows of the source or the target; a vector is one row."""
    if source:
        return layer.source_shape[0] if layer.windows else 1
    return layer.shape[0]


def row_bytes(layer: TiledLayer, source: bool) -> int:
    size = layer.source_bytes if source else layer.target_bytes
    return size // extent(layer, source)


@dataclass(frozen=True)
class Turn:
    """One chunk: of each layer the rows that it computes, and the rows that it reads for them."""

    computes: tuple[Rows, ...]
    reads: tuple[Rows, ...]


def turns(layers: Sequence[TiledLayer], chunk: int) -> tuple[Turn, ...]:
    done, result = [0] * len(layers), list[Turn]()
    rows = extent(layers[-1], source=False)
    for start in range(0, rows, chunk):
        wanted = min(start + chunk, rows)
        computes, reads = [(0, 0)] * len(layers), [(0, 0)] * len(layers)
        for n in reversed(range(len(layers))):
            layer = layers[n]
            computes[n] = (min(done[n], wanted), wanted)
            done[n] = max(done[n], wanted)
            reads[n] = needed(layer, computes[n])
            wanted = max(reads[n][1], done[n - 1] if n else 0)
        result.append(Turn(tuple(computes), tuple(reads)))
    return tuple(result)


def needed(layer: TiledLayer, rows: Rows) -> Rows:
    """Rows of the source that rows of the target are made of."""
    if rows[0] >= rows[1]:
        return (0, 0)
    if layer.windows is None:
        return (0, 1)
    return reach(layer.windows[0], rows[0], rows[1] - rows[0]).clipped(layer.source_shape[0]).ends


@dataclass(frozen=True)
class Rings:
    """Turns of some layers, and how many rows of each source, and of the target, are held."""

    turns: tuple[Turn, ...]
    sources: tuple[int, ...]
    arriving: int
    target: int

    @classmethod
    def of(cls, layers: Sequence[TiledLayer], chunk: int) -> Rings:
        """``arriving``: of the first source where the next turn's rows come in meanwhile."""
        all_turns = turns(layers, chunk)
        sources, arriving = [0] * len(layers), 0
        tops, low = [0] * len(layers), 0
        for number, turn in enumerate(all_turns):
            for n, (start, stop) in enumerate(turn.reads):
                if start < stop:
                    tops[n] = max(tops[n], stop)
                    sources[n] = max(sources[n], tops[n] - start)
            low = turn.reads[0][0] if turn.reads[0][1] else low
            after = all_turns[min(number + 1, len(all_turns) - 1)].reads[0]
            arriving = max(arriving, max(after[1], tops[0]) - low)
        rows = extent(layers[-1], source=False)
        twice = min(rows, 2 * chunk) if len(all_turns) > 1 else rows
        return cls(all_turns, tuple(sources), min(arriving, extent(layers[0], source=True)), twice)


@dataclass(frozen=True)
class Segment:
    """
    Attributes:
        layers: in order; all but the streamed one keep their weights while the segment runs.
        source, target: where they lie.
        streamed: the number of the layer whose weights come in tiles; -1: none.
        tile: output channels of a weight tile.
        copies: weight tiles that are held.
        batch: frames that share what is streamed; their sources and targets are whole, in SRAM.
    """

    layers: tuple[TiledLayer, ...]
    rings: Rings
    source: Place
    target: Place
    streamed: int = -1
    tile: int = 0
    copies: int = 2
    batch: int = 1

    @cached_property
    def source_rows(self) -> int:
        whole = extent(self.layers[0], source=True)
        return whole if self.source == "kept" or self.batch > 1 else self.rings.arriving

    @cached_property
    def target_rows(self) -> int:
        whole = extent(self.layers[-1], source=False)
        return whole if self.target == "kept" or self.batch > 1 else self.rings.target

    @property
    def source_bytes(self) -> int:
        return aligned(self.source_rows * row_bytes(self.layers[0], source=True)) * self.batch

    @property
    def target_bytes(self) -> int:
        return aligned(self.target_rows * row_bytes(self.layers[-1], source=False)) * self.batch

    def middle_bytes(self, n: int) -> int:
        """Of the source of layer ``n``, which is not the first."""
        return aligned(self.rings.sources[n] * row_bytes(self.layers[n], source=True))

    def weight_bytes(self, n: int) -> int:
        layer = self.layers[n]
        if n == self.streamed:
            return aligned(min(self.tile, layer.channels) * layer.row_bytes) * self.copies
        return aligned(layer.weight_bytes)

    @cached_property
    def inner_bytes(self) -> int:
        """Of SRAM, besides the source and the target."""
        number = len(self.layers)
        weights = sum(self.weight_bytes(n) for n in range(number))
        return weights + sum(self.middle_bytes(n) for n in range(1, number))

    @property
    def all_held(self) -> bool:
        """Every weight tile of the streamed layer has a place of its own."""
        channels = self.layers[self.streamed].channels if self.streamed >= 0 else 0
        return channels <= self.copies * self.tile

    @property
    def needed_bytes(self) -> int:
        return self.inner_bytes + self.source_bytes + self.target_bytes

    def cpu_us(self, rates: Rates) -> float:
        return self.batch * rates.compute_us(sum(layer.work for layer in self.layers))

    def io_us(self, rates: Rates) -> float:
        number, total = len(self.rings.turns), 0.0
        for n, layer in enumerate(self.layers):
            if n == self.streamed:
                tiles = -(-layer.channels // self.tile)
                total += number * rates.move_us(layer.weight_bytes, False, tiles)
            elif layer.weight:
                total += rates.move_us(layer.weight_bytes, False)
        if self.source == "stored":
            total += self.batch * rates.move_us(self.layers[0].source_bytes, False, number)
        if self.target == "stored":
            total += self.batch * rates.move_us(self.layers[-1].target_bytes, True, number)
        return total

    @property
    def steps(self) -> int:
        """Computations."""
        tiles = -(-self.layers[self.streamed].channels // self.tile) if self.streamed >= 0 else 1
        return len(self.rings.turns) * (len(self.layers) + tiles - 1)

    def lead_us(self, rates: Rates) -> float:
        """Reading before the first computation, and writing after the last."""
        total, turns_ = 0.0, self.rings.turns
        if self.source == "stored":
            low, high = turns_[0].reads[0]
            size = (high - low) * row_bytes(self.layers[0], source=True)
            total += rates.move_us(size, False)
        weights = [n for n, layer in enumerate(self.layers) if layer.weight]
        if weights:
            first = weights[0]
            size = self.weight_bytes(first) // (self.copies if first == self.streamed else 1)
            total += rates.move_us(size, False)
        if self.target == "stored":
            low, high = turns_[-1].computes[-1]
            size = (high - low) * row_bytes(self.layers[-1], source=False)
            total += rates.move_us(size, True)
        return total
