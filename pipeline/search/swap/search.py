"""The cheapest way to cut a network into segments of consecutive layers, by dynamic programming.

A segment's price is the larger of its computing and its transfers, a share of what it has to read
before it can begin and to write after its end, and a share of all transfers, since less of them
leaves the card time for the segments around. The prices are estimates: the plans of several
shares are simulated, and the fastest is taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import inf
from typing import NamedTuple

from pipeline.plan.rates import Rates
from pipeline.search.swap.segments import GRAIN, Place, Rings, Segment, Times, aligned
from pipeline.search.view.tiles import Source, TiledLayer, staying

CODE_BYTES = 1 << 18
"""Of flash, left to the program; the build says what it takes."""
NEVER = 1 << 62
LONGEST = 10
"""Layers of a segment."""
CHUNKS = (1, 2, 3, 4, 5, 7, 8, 14, 16, 28)
TILES = (256, 64, 16, 8, 4)
"""Weight tiles are of these parts of SRAM, of 128 KiB at most."""
COPIES = (2,)
"""Weight tiles at once; no price depends on how many there are, beyond one."""
MORE_COPIES = (2, 3, 4, 6, 12)
ONE_COPY = (1,)
"""Where nothing arrives while something is computed."""
STEP = 1e-7
"""What a computation counts besides its work, of all work: fewer, larger ones are better if nothing
else is."""
PLACES: tuple[Place, ...] = ("stored", "kept", "both")
"""Of what a segment makes."""


class Share(NamedTuple):
    """How much of a segment's lead counts, of its transfers, whether or not they are hidden, and,
    once more, of waits for rows that have no place of their own. ``sparing``: bytes written to the
    card come before all of it."""

    lead: float
    io: float = 0.0
    waits: float = 1e6
    sparing: bool = False


Offer = tuple[Times, float, Segment]
"""A segment, its times and what its steps cost besides."""


class Cut(NamedTuple):
    """Of the layers from one on: bytes written to the card if these count, what all costs, the
    card's time."""

    written: float
    price: float
    io_us: float
    segments: tuple[Segment, ...]


@dataclass
class Search:
    layers: tuple[TiledLayer, ...]
    rates: Rates
    grain: int = GRAIN
    rings: dict[tuple[int, int, int], Rings] = field(default_factory=dict)
    offers: dict[tuple[int, int, int, Place, Place], list[Offer]] = field(default_factory=dict)

    @property
    def copies(self) -> Sequence[int]:
        """How many tiles of a layer's weights may lie in SRAM."""
        return COPIES if self.rates.dma else ONE_COPY

    @cached_property
    def step_us(self) -> float:
        return STEP * self.rates.compute_us(sum(layer.work for layer in self.layers))

    def ring(self, first: int, last: int, chunk: int) -> Rings:
        key = first, last, chunk
        if key not in self.rings:
            self.rings[key] = Rings.of(self.layers[first : last + 1], chunk, self.grain)
        return self.rings[key]

    @cached_property
    def read_until(self) -> list[int]:
        """Of what each layer makes, the last layer that reads it."""
        last = {s.tensor: n for n, layer in enumerate(self.layers) for s in layer.sources}
        return [last.get(layer.target, len(self.layers)) for layer in self.layers]

    def best(self, room: int, number: int, share: Share) -> list[Segment]:
        """For the first ``number`` layers, from the card to the card, in ``room`` bytes. Empty when
        some layer fits in no way."""

        @cache
        def rest(start: int, place: Place) -> Cut:
            if start == number:
                return Cut(0.0, 0.0 if place == "stored" else inf, 0.0, ())
            found = Cut(inf, inf, 0.0, ())
            for stop in range(start, min(number, start + LONGEST)):
                if place == "kept" and self.read_until[start - 1] > stop:
                    continue
                source: Place = "stored" if place == "stored" else "kept"
                for target in PLACES:
                    here = self.cheapest(share, room, start, stop, source, target)
                    if here is None or (after := rest(stop + 1, target)).price == inf:
                        continue
                    price, io_us, segment = here
                    cut = Cut(
                        after.written + segment.written_bytes * share.sparing,
                        after.price + price,
                        after.io_us + io_us,
                        (segment, *after.segments),
                    )
                    found = min(found, cut, key=lambda cut: cut[:3])
            return found

        return list(rest(0, "stored").segments)

    def cheapest(
        self, share: Share, room: int, first: int, last: int, source: Place, target: Place
    ) -> tuple[float, float, Segment] | None:
        """A segment's price, its transfers' time and itself."""
        key = room, first, last, source, target
        if key not in self.offers:
            self.offers[key] = [
                (each.times(self.rates), self.step_us * each.steps, each)
                for each in self.candidates(*key)
            ]
        prices = [
            (t.busy + steps_us + share.lead * t.lead + share.io * t.io + share.waits * t.waits,
             t.io, number)
            for number, (t, steps_us, _) in enumerate(self.offers[key])
        ]  # fmt: skip
        price, io_us, number = min(prices, default=(inf, inf, -1))
        return (price, io_us, self.offers[key][number][-1]) if prices else None

    def candidates(
        self, room: int, first: int, last: int, source: Place, target: Place
    ) -> Iterator[Segment]:
        rows = self.layers[last].rows
        if target == "both" and self.read_until[last] <= last + 1:
            return
        for plain in self.plain(first, last, source, target, {*CHUNKS, -(-rows // 2), rows}):
            for each in places_of_rows(plain):
                if each.in_whole and each.needed_bytes <= room:
                    yield each
                for n, layer in enumerate(each.layers):
                    if layer.tiled:
                        yield from self.streamed(replace(each, streamed=n), room, self.copies)

    def plain(
        self, first: int, last: int, source: Place, target: Place, chunks: set[int]
    ) -> Iterator[Segment]:
        """Those layers with all weights in SRAM, by chunks of so many rows; none where others need
        what is made inside, or where a layer that needs all of its source is not alone."""
        layers = self.layers[first : last + 1]
        if len(layers) > 1 and not all(layer.sources[0].windows for layer in layers):
            return
        if any(until > last for until in self.read_until[first:last]):
            return
        outside = self.outside(first, last, source)
        if not outside:
            return
        for chunk in sorted({min(chunk, layers[-1].rows) for chunk in chunks}):
            rings = self.ring(first, last, chunk)
            yield Segment(layers, rings, outside, source, target, copies=self.copies[0])

    def outside(self, first: int, last: int, place: Place) -> tuple[Source, ...]:
        """What these layers read of others, what is in SRAM first; none where that is not read."""
        found = self.ring(first, last, self.layers[last].rows).outside
        if place == "stored":
            return found
        kept = [source for source in found if source.tensor == self.layers[first - 1].target]
        return (*kept, *(each for each in found if each not in kept)) if kept else ()

    def streamed(self, segment: Segment, room: int, numbers: Sequence[int]) -> Iterator[Segment]:
        """With weight tiles of several sizes, and as many at once, of ``numbers``, as fit."""
        layer = segment.layers[segment.streamed]
        left = room - replace(segment, tile=0).needed_bytes
        if left < numbers[0] * aligned(layer.row_bytes, self.grain):
            return
        sizes = [min(1 << 17, room // part) for part in TILES]
        sizes.append(min(1 << 14, left // numbers[0]))
        tiles = {max(1, min(layer.channels, s // layer.row_bytes)) for s in sizes}
        if replace(segment, tile=min(tiles)).needed_bytes > room:
            tiles = {1}
        for tile in sorted(tiles):
            for copies in numbers:
                each = replace(segment, tile=tile, copies=copies)
                if each.needed_bytes > room:
                    break
                yield each

    def retiled(self, segment: Segment, room: int) -> Iterator[Segment]:
        """The segment with other weight tiles."""
        if segment.streamed >= 0:
            yield from self.streamed(segment, room, MORE_COPIES if self.rates.dma else ONE_COPY)


def places_of_rows(segment: Segment) -> Iterator[Segment]:
    """The segment with places for rows that arrive and rows that leave while others are computed,
    for one of the two, for none: more room for weights, or for larger chunks."""
    several = len(segment.rings.turns) > 1
    for reads_ahead in (True, False) if several and segment.arrives else (True,):
        for writes_behind in (True, False) if several and segment.target == "stored" else (True,):
            yield replace(segment, reads_ahead=reads_ahead, writes_behind=writes_behind)


def least_bytes(layers: Sequence[TiledLayer], grain: int = GRAIN, copies: int = COPIES[0]) -> int:
    """SRAM in which each layer can run alone, row by row, with so many of the smallest tiles of
    weights."""
    alone = ((layer, Rings.of((layer,), 1, grain)) for layer in layers)
    return max(
        Segment((layer,), rings, rings.outside, "stored", "stored", copies=copies).least_bytes
        for layer, rings in alone
    )


# --- what need not be swapped: weights that stay in flash, feature maps that stay in SRAM


def choices(
    segments: Sequence[Segment], rates: Rates, flash_bytes: int
) -> Iterator[frozenset[str]]:
    """Sets of weights that ``flash_bytes`` hold: first those that the card reads most often, then
    those that the core waits for longest; a tensor stays whole or not at all, and not where
    computing from flash takes longer than reading it from the card."""
    often, waits, sizes = dict[str, float](), dict[str, float](), dict[str, int]()
    for segment in segments:
        times = segment.times(rates)
        for n, layer in enumerate(segment.layers):
            if layer.weight:
                again = n == segment.streamed and not segment.all_held
                often[layer.weight] = len(segment.rings.turns) if again else 1
                read_us = often[layer.weight] * rates.move_us(layer.weight_bytes, writes=False)
                if rates.compute_us(layer.work * (layer.slower - 1)) < read_us:
                    sizes[layer.weight] = layer.weight_bytes
                waits[layer.weight] = times.io - times.cpu
    for order in (often, waits):
        left, held = flash_bytes, set[str]()
        for name in sorted(sizes, key=lambda name: (-order[name], -sizes[name])):
            if sizes[name] <= left:
                left -= sizes[name]
                held.add(name)
        if held:
            yield frozenset(held)


def maps_stay_bytes(search: Search) -> int:
    """SRAM from which on no feature map but the input and the output passes the card, tiles of
    weights included: the least over all cuts into segments; ``NEVER`` where some layer's readers
    are further apart than a segment is long."""
    layers = search.layers

    @cache
    def rest(start: int) -> int:
        if start == len(layers):
            return 0
        least = NEVER
        for stop in range(start, min(len(layers), start + LONGEST)):
            if start and search.read_until[start - 1] > stop:
                continue
            source: Place = "kept" if start else "stored"
            target: Place = "stored" if stop == len(layers) - 1 else "kept"
            for plain in search.plain(start, stop, source, target, {1, layers[stop].rows}):
                if len(plain.outside) == 1:
                    narrow = replace(plain, reads_ahead=False, writes_behind=False)
                    if narrow.least_bytes < least:
                        least = min(least, max(narrow.least_bytes, rest(stop + 1)))
        return least

    return rest(0)


def weights_stay_bytes(search: Search, flash_bytes: int) -> int:
    """SRAM from which on no weight is read twice: what flash does not hold lies beside the maps."""
    left, beside = flash_bytes, 0
    for layer in sorted(search.layers, key=lambda layer: -layer.weight_bytes):
        if layer.weight_bytes <= left:
            left -= layer.weight_bytes
        else:
            beside += layer.weight_bytes
    layers = staying(search.layers, {layer.weight for layer in search.layers})
    return beside + maps_stay_bytes(Search(layers, search.rates, search.grain))
