"""Pieces of a network that run row by row, and what each needs and takes.

A segment makes ``chunk`` rows of its last target at a time. Each layer in it computes the rows that
are needed and not there yet, from rings of rows of what it reads: nothing is computed twice, no
tensor that is made and read inside is ever whole. What comes from outside comes from the card row
by row, but for one tensor that may lie in SRAM; its target goes to either or both. All its weights
lie in SRAM, but those of one layer may be streamed, in tiles of output channels, for each chunk
again. So a chunk of one row is weight-stationary, and one of all rows input-stationary: every
weight is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from pipeline.plan.rates import Rates
from pipeline.search.swap.layers import Source, TiledLayer

Place = Literal["kept", "stored", "both"]
"""In memory, whole; on the card; or, since others read it later, both."""

Rows = tuple[int, int]


GRAIN = 16
"""Bytes that are told apart where no cache's lines are longer."""


def aligned(size: int, grain: int) -> int:
    return -(-size // grain) * grain


@dataclass(frozen=True)
class Turn:
    """One chunk: of each layer the rows that it computes, and of each of its sources the rows that
    it reads for them."""

    computes: tuple[Rows, ...]
    reads: tuple[tuple[Rows, ...], ...]


def turns(layers: Sequence[TiledLayer], chunk: int) -> tuple[Turn, ...]:
    makers = {layer.target: n for n, layer in enumerate(layers)}
    done, result = [0] * len(layers), list[Turn]()
    rows = layers[-1].shape[0]
    for start in range(0, rows, chunk):
        wanted = [*done[:-1], min(start + chunk, rows)]
        computes, reads = [(0, 0)] * len(layers), [tuple[Rows, ...]()] * len(layers)
        for n in reversed(range(len(layers))):
            layer = layers[n]
            computes[n] = (done[n], wanted[n])
            done[n] = wanted[n]
            reads[n] = needed(layer, computes[n])
            for source, (_, stop) in zip(layer.sources, reads[n], strict=True):
                if source.tensor in makers:
                    maker = makers[source.tensor]
                    wanted[maker] = max(wanted[maker], stop)
        result.append(Turn(tuple(computes), tuple(reads)))
    return tuple(result)


def needed(layer: TiledLayer, rows: Rows) -> tuple[Rows, ...]:
    """Rows of each source that rows of the target are made of."""
    return tuple(source.needed(*rows) for source in layer.sources)


@dataclass(frozen=True)
class Rings:
    """Turns of some layers, and how many rows of each tensor are held.

    Attributes:
        outside: what they read and do not make.
        arrivals: of each of these, by name, the rows that each turn needs and none before did.
        held: rows of each tensor that they read, by name.
        arriving: the same where the next turn's rows come in meanwhile.
        chunk, target: rows of what the last one makes, in a turn and in two.
    """

    turns: tuple[Turn, ...]
    outside: tuple[Source, ...]
    arrivals: dict[str, tuple[Rows, ...]]
    held: dict[str, int]
    arriving: dict[str, int]
    chunk: int
    target: int

    @classmethod
    def of(cls, layers: Sequence[TiledLayer], chunk: int) -> Rings:
        all_turns = turns(layers, chunk)
        sources = {s.tensor: s for layer in layers for s in layer.sources}
        makers = {layer.target: n for n, layer in enumerate(layers)}
        arrivals, held, arriving = dict[str, tuple[Rows, ...]](), dict[str, int](), dict[str, int]()
        for name in sources:
            places = [
                (n, k)
                for n, layer in enumerate(layers)
                for k, each in enumerate(layer.sources)
                if each.tensor == name
            ]
            uses = [[turn.reads[n][k] for turn in all_turns] for n, k in places]
            if name in makers:  # rows that nobody reads have a place, too
                uses.append([turn.computes[makers[name]] for turn in all_turns])
            spans = _spans(uses)
            before = [0, *(top for _, top in spans)]
            after = [*(top for _, top in spans[1:]), spans[-1][1]]
            arrivals[name] = tuple(
                (max(low, seen), top) for (low, top), seen in zip(spans, before, strict=False)
            )
            held[name] = max(1, *(top - low for low, top in spans))
            arriving[name] = max(
                1, *(top - low for (low, _), top in zip(spans, after, strict=True))
            )
        rows = layers[-1].shape[0]
        twice = min(rows, 2 * chunk) if len(all_turns) > 1 else rows
        outside = tuple(source for name, source in sources.items() if name not in makers)
        return cls(all_turns, outside, arrivals, held, arriving, min(rows, chunk), twice)


def _spans(uses: Sequence[Sequence[Rows]]) -> list[Rows]:
    """For each turn from the first row that is used then or later to the last that has been;
    ``uses``: (turns) of each layer that reads or makes some."""
    tops = list(
        accumulate((max(stop for _, stop in each) for each in zip(*uses, strict=True)), max)
    )
    lows = [tops[-1]] * len(tops)
    for each in uses:
        low = tops[-1]
        for number, (start, stop) in reversed(list(enumerate(each))):
            low = start if start < stop else low
            lows[number] = min(lows[number], low)
    return list(zip(lows, tops, strict=True))


def ring_bytes(source: Source, rows: int, channels: int, grain: int) -> int:
    """Of so many rows of a tensor, with some of its channels."""
    return aligned(rows * (source.row_bytes * channels // source.shape[-1]), grain)


@dataclass(frozen=True)
class Segment:
    """
    Attributes:
        layers: in order; all but the streamed one keep their weights while the segment runs.
        outside: what they read and do not make; the first is at ``source``, others on the card.
        source, target: where the first of these, and what is made, lie.
        streamed: the number of the layer whose weights come in tiles; -1: none.
        tile: output channels of a weight tile.
        copies: weight tiles that are held.
        batch: frames that share what is streamed; their sources and targets are whole, in SRAM.
        grain: bytes; everything takes a multiple of them.
        reads_ahead: the rows that the next chunk needs have a place of their own, so that they
            arrive while this one is computed.
        writes_behind: so have the rows of the chunk before, which leave meanwhile.
    """

    layers: tuple[TiledLayer, ...]
    rings: Rings
    outside: tuple[Source, ...]
    source: Place
    target: Place
    streamed: int = -1
    tile: int = 0
    copies: int = 2
    batch: int = 1
    grain: int = GRAIN
    reads_ahead: bool = True
    writes_behind: bool = True

    @cached_property
    def source_rows(self) -> int:
        whole = self.source == "kept" or self.batch > 1
        return self.outside[0].rows if whole else self.arriving[self.outside[0].tensor]

    @property
    def arriving(self) -> dict[str, int]:
        """Rows of each tensor from the card that have a place."""
        return self.rings.arriving if self.reads_ahead else self.rings.held

    @cached_property
    def target_rows(self) -> int:
        whole = self.target != "stored" or self.batch > 1
        if whole:
            return self.layers[-1].shape[0]
        return self.rings.target if self.writes_behind else self.rings.chunk

    @property
    def source_bytes(self) -> int:
        size = self.source_rows * self.outside[0].row_bytes
        return aligned(size, self.grain) * self.batch

    @property
    def target_bytes(self) -> int:
        layer = self.layers[-1]
        size = self.target_rows * (layer.target_bytes // layer.shape[0])
        return aligned(size, self.grain) * self.batch

    @cached_property
    def between(self) -> tuple[tuple[Source, int, int], ...]:
        """What else is read, how many rows of it are held, and how many channels of them: what
        comes from the card besides the source, and what layers make for others."""
        inside = {layer.target for layer in self.layers}
        found = [
            (source, self.arriving[source.tensor], source.shape[-1]) for source in self.outside[1:]
        ]
        narrow = {s.tensor for layer in self.by_tile for s in layer.sources}
        reads = {s.tensor: s for layer in self.layers for s in layer.sources if s.tensor in inside}
        for name, source in reads.items():
            channels = min(self.tile, source.shape[-1]) if name in narrow else source.shape[-1]
            found.append((source, self.rings.held[name], channels))
        return tuple(found)

    @cached_property
    def by_tile(self) -> tuple[TiledLayer, ...]:
        """The layers after the streamed one where they need no more than the channels that a tile
        of its weights makes: in one turn, each channel of its own."""
        after = self.layers[self.streamed + 1 :]
        if self.streamed < 0 or self.batch > 1 or len(self.rings.turns) > 1:
            return ()
        for before, layer in zip(self.layers[self.streamed :], after, strict=False):
            alone = len(layer.sources) == 1 and layer.source == before.target
            if not (alone and layer.channelwise and layer.channels == before.channels):
                return ()
        return after

    @cached_property
    def source_dies(self) -> bool:
        """Nothing reads the source any more once the streamed layer begins."""
        late = {s.tensor for layer in self.layers[self.streamed :] for s in layer.sources}
        once = self.streamed >= 0 and len(self.rings.turns) == 1
        return once and self.outside[0].tensor not in late

    def weight_bytes(self, n: int) -> int:
        layer = self.layers[n]
        if n == self.streamed:
            size = min(self.tile, layer.channels) * layer.row_bytes
            return aligned(size, self.grain) * self.copies
        return aligned(layer.weight_bytes, self.grain)

    @cached_property
    def inner_bytes(self) -> int:
        """Of SRAM, besides the source and the target."""
        weights = sum(self.weight_bytes(n) for n in range(len(self.layers)))
        return weights + sum(ring_bytes(*each, self.grain) for each in self.between)

    @property
    def all_held(self) -> bool:
        """Every weight tile of the streamed layer has a place of its own."""
        channels = self.layers[self.streamed].channels if self.streamed >= 0 else 0
        return channels <= self.copies * self.tile

    @property
    def needed_bytes(self) -> int:
        return self.inner_bytes + self.source_bytes + self.target_bytes

    @property
    def arrives(self) -> tuple[Source, ...]:
        """What comes from the card."""
        return self.outside if self.source == "stored" else self.outside[1:]

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
        return total + self.arrives_us(rates) + self.leaves_us(rates)

    def arrives_us(self, rates: Rates) -> float:
        """Reading of feature maps."""
        sizes = [source.rows * source.row_bytes for source in self.arrives]
        return self.batch * sum(rates.move_us(n, False, len(self.rings.turns)) for n in sizes)

    @property
    def written_bytes(self) -> int:
        """To the card, for each frame."""
        return 0 if self.target == "kept" else self.layers[-1].target_bytes

    def leaves_us(self, rates: Rates) -> float:
        """Writing."""
        return self.batch * rates.move_us(self.written_bytes, True, len(self.rings.turns))

    def waits_us(self, rates: Rates) -> float:
        """How long computing waits for rows without a place of their own."""
        if not rates.dma:
            return 0.0
        arrives = 0.0 if self.reads_ahead else self.arrives_us(rates)
        return arrives + (0.0 if self.writes_behind else self.leaves_us(rates))

    def busy_us(self, rates: Rates) -> float:
        """Of the engine that takes longer; of both where they take turns."""
        cpu_us, io_us = self.cpu_us(rates), self.io_us(rates)
        return max(cpu_us + self.waits_us(rates), io_us) if rates.dma else cpu_us + io_us

    @property
    def steps(self) -> int:
        """Computations."""
        tiles = -(-self.layers[self.streamed].channels // self.tile) if self.streamed >= 0 else 1
        by_tile = 1 + len(self.by_tile)
        return len(self.rings.turns) * (len(self.layers) - by_tile + tiles * by_tile)

    def lead_us(self, rates: Rates) -> float:
        """Reading before the first computation, and writing after the last."""
        total, turns_ = 0.0, self.rings.turns
        if self.source == "stored":
            (low, high), *_ = turns_[0].reads[0]
            total += rates.move_us((high - low) * self.layers[0].sources[0].row_bytes, False)
        weights = [n for n, layer in enumerate(self.layers) if layer.weight]
        if weights:
            first = weights[0]
            size = self.weight_bytes(first) // (self.copies if first == self.streamed else 1)
            total += rates.move_us(size, False)
        if self.target != "kept":
            low, high = turns_[-1].computes[-1]
            layer = self.layers[-1]
            total += rates.move_us((high - low) * (layer.target_bytes // layer.shape[0]), True)
        return total
