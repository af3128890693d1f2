"""Pieces of a network that run row by row, and what each needs and takes.

A segment makes ``chunk`` rows of its last target at a time. Each layer in it computes the rows that
are needed and not there yet, from rings of rows of what it reads: nothing is computed twice, no
tensor that is made and read inside is ever whole. What comes from outside comes from the card row
by row, but for one tensor that may lie in SRAM; its target goes to either or both. All its weights
lie in SRAM, but those of one layer may be streamed, in tiles of output channels, for each chunk
again. So a chunk of one row is weight-stationary, and one of all rows input-stationary: every
weight is read once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from math import prod
from operator import sub
from typing import Literal, NamedTuple, Self

from pipeline.placement.blocks import round_up
from pipeline.plan.rates import Rates
from pipeline.search.view.tiles import Rows, Source, TiledLayer

Place = Literal["kept", "stored", "both"]
"""In memory, whole; on the card; or, since others read it later, both."""
GRAIN = 16
"""Bytes that are told apart where no cache's lines are longer."""


class Ring(NamedTuple):
    """A place in SRAM for ``rows`` rows of a tensor.

    Attributes:
        grain: bytes; it takes a multiple of them.
        copies: of these places, ``copy_bytes`` apart.
        channels: that each row has; 0: all.
    """

    grain: int
    tensor: str
    rows: int
    row_bytes: int
    copies: int = 1
    channels: int = 0

    @property
    def copy_bytes(self) -> int:
        return round_up(self.rows * self.row_bytes, self.grain)

    @property
    def bytes(self) -> int:
        return self.copies * self.copy_bytes


class Rings(NamedTuple):
    """Turns of some layers, and the rows that they need.

    Attributes:
        turns: of each chunk the rows that each layer computes.
        outside: what they read and do not make; ``inside``: what they read and make.
        arrivals: of each that they read, by name, the rows that each turn needs and none before.
        held: how many rows are held of each.
        arriving: the same where the next turn's rows come in meanwhile.
        grain: bytes; everything takes a multiple of them.
    """

    turns: tuple[tuple[Rows, ...], ...]
    outside: tuple[Source, ...]
    inside: tuple[Source, ...]
    arrivals: dict[str, tuple[Rows, ...]]
    held: dict[str, int]
    arriving: dict[str, int]
    grain: int

    @classmethod
    def of(cls, layers: Sequence[TiledLayer], chunk: int, grain: int = GRAIN) -> Self:
        sources = {source.tensor: source for layer in layers for source in layer.sources}
        makers, last = {layer.target for layer in layers}, layers[-1]
        # of each tensor, after each turn, how many rows were needed; in it, the first row used
        stops, firsts = [dict.fromkeys((*sources, *makers), 0)], list[dict[str, int]]()
        for stop in (*range(chunk, last.rows, chunk), last.rows):
            wanted, first = {**stops[-1], last.target: stop}, dict[str, int]()
            for layer in reversed(layers):
                made = stops[-1][layer.target], wanted[layer.target]
                reads = ((source.tensor, source.needed(*made)) for source in layer.sources)
                for name, (low, high) in ((layer.target, made), *reads):
                    wanted[name] = max(wanted[name], high)
                    if low < high:
                        first[name] = min(first.get(name, low), low)
            stops.append(wanted)
            firsts.append(first)
        turns = pairwise([each[layer.target] for layer in layers] for each in stops)
        arrivals, held, arriving = dict[str, tuple[Rows, ...]](), dict[str, int](), dict[str, int]()
        for name in sources:
            before, *tops = (each[name] for each in stops)
            used = [each.get(name, tops[-1]) for each in firsts]
            lows = list(accumulate(reversed(used), min))[::-1]  # the first used then or later
            arrivals[name] = tuple(zip(map(max, lows, [before, *tops]), tops, strict=False))
            held[name] = max(1, *map(sub, tops, lows))
            arriving[name] = max(1, *map(sub, [*tops[1:], tops[-1]], lows))
        outside = tuple(each for name, each in sources.items() if name not in makers)
        inside = tuple(each for name, each in sources.items() if name in makers)
        every = tuple(tuple(zip(*ends, strict=True)) for ends in turns)
        return cls(every, outside, inside, arrivals, held, arriving, grain)


class Times(NamedTuple):
    """Microseconds of a segment: computing; transfers; reading before the first computation and
    writing after the last; waiting for rows without a place of their own; the engine that takes
    longer, or both where they take turns."""

    cpu: float
    io: float
    lead: float
    waits: float
    busy: float


@dataclass(frozen=True)
class Segment:
    """
    Attributes:
        layers: in order; all but the streamed one keep their weights while the segment runs.
        kept: what they read and do not make that lies in SRAM, whole; the rest is on the card.
        target: where what is made lies.
        streamed: the number of the layer whose weights come in tiles; -1: none.
        tile: output channels of a weight tile.
        copies: weight tiles that are held.
        batch: frames that share what is streamed; their sources and targets are whole, in SRAM.
        reads_ahead: the rows that the next chunk needs have a place of their own, so that they
            arrive while this one is computed.
        writes_behind: so have the rows of the chunk before, which leave meanwhile.
    """

    layers: tuple[TiledLayer, ...]
    rings: Rings
    kept: str
    target: Place
    streamed: int = -1
    tile: int = 0
    copies: int = 2
    batch: int = 1
    reads_ahead: bool = True
    writes_behind: bool = True

    # --- what it takes in SRAM

    @cached_property
    def places(self) -> dict[str | int, Ring]:
        """By tensor, of weights by the number of the layer: of the source and the target, whole or
        not, then of what else is read, from the card or made by layers for others, and of weights,
        all of them or tiles."""
        return dict(self._places())

    def _places(self) -> Iterator[tuple[str | int, Ring]]:
        rings, last, whole = self.rings, self.layers[-1], self.batch > 1
        source, *others = sorted(rings.outside, key=lambda each: each.tensor != self.kept)
        place = partial(Ring, rings.grain)
        arriving = rings.arriving if self.reads_ahead else rings.held
        rows = source.rows if self.kept or whole else arriving[source.tensor]
        yield source.tensor, place(source.tensor, rows, source.row_bytes, self.batch)
        # of rows that leave, those of one turn, or of two
        *_, turn = rings.turns[: 1 + self.writes_behind]
        rows = last.rows if self.target != "stored" or whole else turn[-1][1]
        yield last.target, place(last.target, rows, prod(last.shape[1:]), self.batch)
        for each in others:
            yield each.tensor, place(each.tensor, arriving[each.tensor], each.row_bytes)
        by_tile = [layer.sources[0].tensor for layer in self.by_tile]
        for each in rings.inside:
            name, depth = each.tensor, each.shape[-1]
            some = min(self.tile, depth) if name in by_tile else depth
            size = each.row_bytes * some // depth
            yield name, place(name, rings.held[name], size, channels=some)
        yield from ((n, self._weights(n)) for n, layer in enumerate(self.layers) if layer.weight)

    def _weights(self, n: int) -> Ring:
        layer = self.layers[n]
        tile, copies = (self.tile, self.copies) if n == self.streamed else (layer.channels, 1)
        tile = min(tile, layer.channels)
        return Ring(self.rings.grain, layer.weight, tile, layer.row_bytes, copies)

    @cached_property
    def needed_bytes(self) -> int:
        return sum(ring.bytes for _, ring in self._places())

    @property
    def forms(self) -> Iterator[Self]:
        """With all weights in SRAM, of which a dense layer has none but tiles there; with those of
        one layer to be streamed."""
        if self.layers[0].sources[0].windows or not self.layers[0].weight:
            yield self
        for n, layer in enumerate(self.layers):
            if layer.weight and not layer.channelwise:  # tiles of output channels
                yield replace(self, streamed=n)

    @property
    def least_bytes(self) -> int:
        return min(replace(each, tile=1).needed_bytes for each in self.forms)

    @cached_property
    def by_tile(self) -> tuple[TiledLayer, ...]:
        """The layers after the streamed one where they need no more than the channels that a tile
        of its weights makes: in one turn, each channel of its own."""
        after = self.layers[self.streamed + 1 :]
        if self.streamed < 0 or self.batch > 1 or len(self.rings.turns) > 1:
            return ()
        for before, layer in zip(self.layers[self.streamed :], after, strict=False):
            alone = len(layer.sources) == 1 and layer.sources[0].tensor == before.target
            if not (alone and layer.channelwise and layer.channels == before.channels):
                return ()
        return after

    @property
    def tiles(self) -> int:
        """Count the tiles of the streamed layer's weights."""
        return -(-self.layers[self.streamed].channels // self.tile) if self.streamed >= 0 else 1

    @property
    def all_held(self) -> bool:
        """Every weight tile of the streamed layer has a place of its own."""
        return self.streamed < 0 or self.tiles <= self.copies

    # --- what it does

    @property
    def arrives(self) -> tuple[Source, ...]:
        """Select the sources that come from the card."""
        return tuple(each for each in self.rings.outside if each.tensor != self.kept)

    @property
    def written_bytes(self) -> int:
        """To the card, for each frame."""
        return 0 if self.target == "kept" else prod(self.layers[-1].shape)

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
        weights = (self._weights(n).copy_bytes for n, layer in enumerate(layers) if layer.weight)
        io, lead = arrives + leaves, rates.move_us(next(weights, 0), False)
        if not self.kept:
            source = layers[0].sources[0]
            low, high = source.needed(*turns[0][0])
            lead += rates.move_us((high - low) * source.row_bytes, False)
        if self.target != "kept":
            low, high = turns[-1][-1]
            lead += rates.move_us((high - low) * prod(layers[-1].shape[1:]), True)
        for n, layer in enumerate(layers):
            again, tiles = (len(turns), self.tiles) if n == self.streamed else (1, 1)
            io += again * rates.move_us(layer.weight_bytes, False, tiles)
        waits = rates.dma * (arrives * (not self.reads_ahead) + leaves * (not self.writes_behind))
        busy = max(cpu + waits, io) if rates.dma else cpu + io
        return Times(cpu, io, lead, waits, busy)
