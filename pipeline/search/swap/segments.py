"""Pieces of a network that run row by row, and what each needs and takes.

A segment makes ``chunk`` rows of its last target at a time. Each layer in it computes the rows that
are needed and not there yet, from rings of rows of what it reads: nothing is computed twice, no
tensor that is made and read inside is ever whole. What comes from outside comes from the card row
by row, but for one tensor that may lie in SRAM; its target goes to either or both. All its weights
lie in SRAM, but those of one layer may be streamed, in tiles of output channels, for each chunk
again. So a chunk of one row is weight-stationary, and one of all rows input-stationary: every
weight is read once.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import sub
from typing import Literal, NamedTuple, Self

from pipeline.plan.rates import Rates
from pipeline.search.view.tiles import Rows, Source, TiledLayer

Place = Literal["kept", "stored", "both"]
"""In memory, whole; on the card; or, since others read it later, both."""
GRAIN = 16
"""Bytes that are told apart where no cache's lines are longer."""


def aligned(size: int, grain: int) -> int:
    return -(-size // grain) * grain


class Turn(NamedTuple):
    """One chunk: of each layer the rows that it computes, and of each of its sources the rows that
    it reads for them."""

    computes: tuple[Rows, ...]
    reads: tuple[tuple[Rows, ...], ...]


def turns(layers: Sequence[TiledLayer], chunk: int) -> tuple[Turn, ...]:
    makers = {layer.target: n for n, layer in enumerate(layers)}
    done, result = [0] * len(layers), list[Turn]()
    rows = layers[-1].rows
    for start in range(0, rows, chunk):
        wanted = [*done[:-1], min(start + chunk, rows)]
        computes = list(zip(done, wanted, strict=True))
        reads = [tuple[Rows, ...]()] * len(layers)
        for n in reversed(range(len(layers))):
            computes[n] = (done[n], wanted[n])
            reads[n] = layers[n].needed(computes[n])
            for source, (_, stop) in zip(layers[n].sources, reads[n], strict=True):
                if source.tensor in makers:
                    maker = makers[source.tensor]
                    wanted[maker] = max(wanted[maker], stop)
        done = wanted
        result.append(Turn(tuple(computes), tuple(reads)))
    return tuple(result)


class Rings(NamedTuple):
    """Turns of some layers, and how many rows of each tensor are held.

    Attributes:
        outside: what they read and do not make.
        arrivals: of each of these, by name, the rows that each turn needs and none before did.
        held: rows of each tensor that they read, by name.
        arriving: the same where the next turn's rows come in meanwhile.
    """

    turns: tuple[Turn, ...]
    outside: tuple[Source, ...]
    arrivals: dict[str, tuple[Rows, ...]]
    held: dict[str, int]
    arriving: dict[str, int]

    @classmethod
    def of(cls, layers: Sequence[TiledLayer], chunk: int) -> Self:
        every, makers = turns(layers, chunk), {layer.target: n for n, layer in enumerate(layers)}
        sources, places = dict[str, Source](), defaultdict[str, list[tuple[int, int]]](list)
        for n, layer in enumerate(layers):
            for k, source in enumerate(layer.sources):
                sources[source.tensor] = source
                places[source.tensor].append((n, k))
        arrivals, held, arriving = dict[str, tuple[Rows, ...]](), dict[str, int](), dict[str, int]()
        for name in sources:
            uses = [[turn.reads[n][k] for n, k in places[name]] for turn in every]
            if name in makers:  # rows that nobody reads have a place, too
                made = makers[name]
                uses = [[*use, turn.computes[made]] for use, turn in zip(uses, every, strict=True)]
            lows, tops = _spans(uses)
            arrivals[name] = tuple(zip(map(max, lows, [0, *tops]), tops, strict=False))
            held[name] = max(1, *map(sub, tops, lows))
            arriving[name] = max(1, *map(sub, [*tops[1:], tops[-1]], lows))
        outside = tuple(source for name, source in sources.items() if name not in makers)
        return cls(every, outside, arrivals, held, arriving)


def _spans(uses: Sequence[Sequence[Rows]]) -> tuple[list[int], list[int]]:
    """For each turn the first row that is used then or later, and the end of those that have been;
    ``uses``: of each turn."""
    tops = list(accumulate((max(stop for _, stop in each) for each in uses), max))
    firsts = [min((a for a, b in each if a < b), default=tops[-1]) for each in uses]
    return list(accumulate(reversed(firsts), min))[::-1], tops


class Ring(NamedTuple):
    """The place of ``rows`` rows of a tensor, with ``channels`` of its channels."""

    tensor: str
    rows: int
    channels: int
    row_bytes: int

    @classmethod
    def of(cls, source: Source, rows: int, most: int = 1 << 30) -> Self:
        """With ``most`` channels."""
        depth = source.shape[-1]
        channels = min(most, depth)
        return cls(source.tensor, rows, channels, source.row_bytes * channels // depth)


class Times(NamedTuple):
    """Microseconds of a segment.

    Attributes:
        cpu: computing.
        arrives, leaves: reading and writing of feature maps.
        io: these, and the reading of weights.
        lead: reading before the first computation, and writing after the last.
        waits: of computing, for rows without a place of their own.
        busy: of the engine that takes longer; of both where they take turns.
    """

    cpu: float
    arrives: float
    leaves: float
    io: float
    lead: float
    waits: float
    busy: float


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

    # --- what it takes in SRAM

    @property
    def arriving(self) -> dict[str, int]:
        """Rows of each tensor from the card that have a place."""
        return self.rings.arriving if self.reads_ahead else self.rings.held

    @cached_property
    def source_ring(self) -> Ring:
        source = self.outside[0]
        whole = self.source == "kept" or self.batch > 1
        return Ring.of(source, source.rows if whole else self.arriving[source.tensor])

    @cached_property
    def target_ring(self) -> Ring:
        """Of rows that leave, those of one turn, or of two."""
        last, turns = self.layers[-1], self.rings.turns
        whole = self.target != "stored" or self.batch > 1
        rows = turns[:2][-1 if self.writes_behind else 0].computes[-1][1]
        return Ring(last.target, last.rows if whole else rows, last.channels, last.target_row_bytes)

    @cached_property
    def between(self) -> tuple[Ring, ...]:
        """Of what else is read: what comes from the card besides the source, and what layers make
        for others."""
        inside = {layer.target for layer in self.layers}
        found = {s.tensor: Ring.of(s, self.arriving[s.tensor]) for s in self.outside[1:]}
        for layer in self.layers:
            most = self.tile if layer in self.by_tile else 1 << 30
            for s in layer.sources:
                if s.tensor in inside:
                    found[s.tensor] = Ring.of(s, self.rings.held[s.tensor], most)
        return tuple(found.values())

    def ring_bytes(self, ring: Ring) -> int:
        return aligned(ring.rows * ring.row_bytes, self.grain) * self.batch

    def weight_bytes(self, n: int) -> int:
        layer = self.layers[n]
        if n == self.streamed:
            size = min(self.tile, layer.channels) * layer.row_bytes
            return aligned(size, self.grain) * self.copies
        return aligned(layer.weight_bytes, self.grain)

    @cached_property
    def inner_bytes(self) -> int:
        """Besides the source and the target."""
        weights = sum(self.weight_bytes(n) for n in range(len(self.layers)))
        return weights + sum(map(self.ring_bytes, self.between))

    @property
    def needed_bytes(self) -> int:
        ends = self.source_ring, self.target_ring
        return self.inner_bytes + sum(map(self.ring_bytes, ends))

    @property
    def in_whole(self) -> bool:
        """All of its weights can lie in SRAM: of a dense layer, none but tiles."""
        return bool(self.layers[0].windows or not self.layers[0].weight)

    @property
    def least_bytes(self) -> int:
        """With all weights in SRAM, or those of one layer in the smallest tiles."""
        ways = [self] * self.in_whole
        tiled = [n for n, layer in enumerate(self.layers) if layer.tiled]
        ways += [replace(self, streamed=n, tile=1) for n in tiled]
        return min(each.needed_bytes for each in ways)

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

    @property
    def source_dies(self) -> bool:
        """Nothing reads the source any more once the streamed layer begins."""
        late = {s.tensor for layer in self.layers[self.streamed :] for s in layer.sources}
        once = self.streamed >= 0 and len(self.rings.turns) == 1
        return once and self.outside[0].tensor not in late

    @property
    def tiles(self) -> int:
        """Of the streamed layer's weights."""
        return -(-self.layers[self.streamed].channels // self.tile) if self.streamed >= 0 else 1

    @property
    def all_held(self) -> bool:
        """Every weight tile of the streamed layer has a place of its own."""
        return self.streamed < 0 or self.tiles <= self.copies

    # --- what it does

    @property
    def arrives(self) -> tuple[Source, ...]:
        """What comes from the card."""
        return self.outside if self.source == "stored" else self.outside[1:]

    @property
    def written_bytes(self) -> int:
        """To the card, for each frame."""
        return 0 if self.target == "kept" else self.layers[-1].target_bytes

    @property
    def steps(self) -> int:
        """Computations."""
        by_tile = 1 + len(self.by_tile)
        return len(self.rings.turns) * (len(self.layers) - by_tile + self.tiles * by_tile)

    def times(self, rates: Rates) -> Times:
        layers, turns = self.layers, self.rings.turns
        cpu = self.batch * rates.compute_us(sum(layer.work for layer in layers))
        sizes = [source.rows * source.row_bytes for source in self.arrives]
        arrives = self.batch * sum(rates.move_us(size, False, len(turns)) for size in sizes)
        leaves = self.batch * rates.move_us(self.written_bytes, True, len(turns))
        io = lead = 0.0
        if self.source == "stored":
            (low, high), *_ = turns[0].reads[0]
            lead += rates.move_us((high - low) * layers[0].sources[0].row_bytes, False)
        weights = [n for n, layer in enumerate(layers) if layer.weight]
        for n in weights:
            streamed = n == self.streamed
            again, tiles = (len(turns), self.tiles) if streamed else (1, 1)
            io += again * rates.move_us(layers[n].weight_bytes, False, tiles)
            if n == weights[0]:
                size = self.weight_bytes(n) // (self.copies if streamed else 1)
                lead += rates.move_us(size, False)
        if self.target != "kept":
            low, high = turns[-1].computes[-1]
            lead += rates.move_us((high - low) * layers[-1].target_row_bytes, True)
        waits = (0.0 if self.reads_ahead else arrives) + (0.0 if self.writes_behind else leaves)
        waits *= rates.dma
        io = io + arrives + leaves
        busy = max(cpu + waits, io) if rates.dma else cpu + io
        return Times(cpu, arrives, leaves, io, lead, waits, busy)
