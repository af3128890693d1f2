"""The cheapest way to cut a network into segments of consecutive layers, by dynamic programming.

A segment's price is the larger of its computing and its transfers, a share of what it has to read
before it can begin and to write after its end, and a share of all transfers, since less of them
leaves the card time for the segments around. The prices are estimates: the plans of several
shares are simulated, and the fastest is taken.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import add
from typing import Any, NamedTuple, TypeVar

from pipeline.placement.blocks import round_up
from pipeline.plan.rates import Rates
from pipeline.search.swap.segments import GRAIN, Place, Rings, Segment, Times
from pipeline.search.view.tiles import TiledLayer, staying

CODE_BYTES = 1 << 18
"""Bytes of flash left to the program; the build says what it takes."""
NEVER = 1 << 62
LONGEST = 10
"""Layers of a segment."""
CHUNKS = (1, 2, 3, 4, 5, 7, 8, 14, 16, 28)
TILES = (256, 64, 16, 8, 4)
"""Weight tiles are of these parts of SRAM, of 128 KiB at most."""
MORE_COPIES = (2, 3, 4, 6, 12)
"""Weight tiles at once; no price depends on how many there are, beyond one."""
STEP = 1e-7
"""Cost of a computation besides its work, as a part of all work: fewer, larger ones are better if
all else is equal."""
PLACES: tuple[Place, ...] = ("stored", "kept", "both")
"""Places of what a segment makes."""


class Cut(NamedTuple):
    """A cut of some layers: bytes written to the card if these count, price, the card's time."""

    written: float
    price: float
    io_us: float
    segments: tuple[Segment, ...]

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return self[:3] < other[:3]

    def then(self, after: "Cut") -> "Cut":
        return Cut(*map(add, self, after))


class Share(NamedTuple):
    """Weights in a price: of a segment's lead, of its transfers, whether or not they are hidden,
    and, once more, of waits for rows that have no place of their own. ``sparing``: bytes written
    to the card come before all of it."""

    lead: float
    io: float = 0.0
    waits: float = 1e6
    sparing: bool = False

    def cut(self, times: Times, steps_us: float, segment: Segment) -> Cut:
        price = times.busy + steps_us + self.lead * times.lead + self.io * times.io
        written = segment.written_bytes * self.sparing
        return Cut(written, price + self.waits * times.waits, times.io, (segment,))


Value = TypeVar("Value", bound="int | Cut")


@dataclass
class Search:
    layers: tuple[TiledLayer, ...]
    rates: Rates
    grain: int = GRAIN

    def __post_init__(self) -> None:
        self.offers, self.forms = cache(self._offers), cache(self._forms)
        self.ring = cache(
            lambda first, last, chunk: Rings.of(self.layers[first : last + 1], chunk, self.grain)
        )
        self.step_us = STEP * self.rates.compute_us(sum(layer.work for layer in self.layers))
        self.copies = 2 if self.rates.dma else 1  # of a tile of weights: one for what arrives

    @cached_property
    def read_until(self) -> list[int]:
        """Find the last layer that reads each layer's result; the number of layers if none does."""
        last = {s.tensor: n for n, layer in enumerate(self.layers) for s in layer.sources}
        return [last.get(layer.target, len(self.layers)) for layer in self.layers]

    def least(
        self,
        number: int,
        offer: Callable[[int, int, bool, Place], Value | None],
        then: Callable[[Value, Value], Value],
        end: Value,
    ) -> Value | None:
        """Find the least of all cuts of the first ``number`` layers, from the card to the card;
        None if there is none. ``offer``: the least of all segments of these layers, what they read
        kept or stored, what they make in this place; ``then``: what it is with those after it."""

        @cache
        def rest(start: int, place: Place) -> Value | None:
            if start == number:
                return end if place == "stored" else None
            found = list[Value]()
            for stop in range(start, min(number, start + LONGEST)):
                if place == "kept" and self.read_until[start - 1] > stop:
                    continue
                for target in PLACES:
                    here = offer(start, stop, place != "stored", target)
                    if here is not None and (after := rest(stop + 1, target)) is not None:
                        found.append(then(here, after))
            return min(found, default=None)

        return rest(0, "stored")

    def best(self, room: int, number: int, share: Share) -> list[Segment]:
        """Return the cheapest cut in ``room`` bytes. Empty when some layer fits in no way."""

        def offer(*key: Any) -> Cut | None:
            return min((share.cut(*each) for each in self.offers(room, *key)), default=None)

        found = self.least(number, offer, Cut.then, Cut(0.0, 0.0, 0.0, ()))
        return list(found.segments) if found else []

    def _offers(self, *key: Any) -> list[tuple[Times, float, Segment]]:
        """Segments, their times and what their steps cost besides."""
        return [(s.times(self.rates), self.step_us * s.steps, s) for s in self.candidates(*key)]

    def candidates(
        self, room: int, first: int, last: int, kept: bool, target: Place
    ) -> Iterator[Segment]:
        if target == "both" and self.read_until[last] <= last + 1:
            return
        for form in self.forms(first, last, kept, target):
            if form.streamed >= 0:
                yield from self.streamed(form, room, (self.copies,))
            elif form.needed_bytes <= room:
                yield form

    def _forms(self, first: int, last: int, kept: bool, target: Place) -> list[Segment]:
        """Segments of all chunks and places of rows; without tiles of what is streamed."""
        rows = self.layers[last].rows
        plain = self.plain(first, last, kept, target, {*CHUNKS, -(-rows // 2), rows})
        return [form for each in plain for more in places_of_rows(each) for form in more.forms]

    def plain(
        self, first: int, last: int, kept: bool, target: Place, chunks: set[int]
    ) -> Iterator[Segment]:
        """Yield those layers with all weights in SRAM, by chunks of so many rows; none where others
        need what is made inside, or where a layer that needs all of its source is not alone."""
        layers = self.layers[first : last + 1]
        if len(layers) > 1 and not all(layer.sources[0].windows for layer in layers):
            return
        if any(until > last for until in self.read_until[first:last]):
            return
        source = self.layers[first - 1].target if kept else ""
        for chunk in sorted({min(chunk, layers[-1].rows) for chunk in chunks}):
            rings = self.ring(first, last, chunk)
            if source in ("", *(each.tensor for each in rings.outside)):
                yield Segment(layers, rings, source, target, copies=self.copies)

    @property
    def least_bytes(self) -> int:
        """SRAM in which each layer can run alone, row by row, with the smallest weight tiles."""
        alone = (self.plain(n, n, False, "stored", {1}) for n in range(len(self.layers)))
        return max(segment.least_bytes for each in alone for segment in each)

    def streamed(self, segment: Segment, room: int, numbers: Sequence[int]) -> Iterator[Segment]:
        """Yield the segment, without tiles, with those of several sizes, and as many at once, of
        ``numbers``, as fit."""
        layer = segment.layers[segment.streamed]
        left = room - segment.needed_bytes
        if left < numbers[0] * round_up(layer.row_bytes, self.grain):
            return
        sizes = [min(1 << 17, room // part) for part in TILES]
        sizes.append(min(1 << 14, left // numbers[0]))
        channels = (min(layer.channels, max(1, size // layer.row_bytes)) for size in sizes)
        tiles = {max(n - n % self.rates.channels, n % self.rates.channels) for n in channels}
        if replace(segment, tile=min(tiles)).needed_bytes > room:
            tiles = {1}
        for tile in sorted(tiles):
            for copies in numbers:
                each = replace(segment, tile=tile, copies=copies)
                if each.needed_bytes > room:
                    break
                yield each

    def retiled(self, segment: Segment, room: int) -> Iterator[Segment]:
        """Yield the segment with other weight tiles."""
        if segment.streamed >= 0:
            numbers = MORE_COPIES if self.rates.dma else (1,)
            yield from self.streamed(replace(segment, tile=0), room, numbers)


def places_of_rows(segment: Segment) -> Iterator[Segment]:
    """Yield the segment with places for rows that arrive and rows that leave while others are
    computed, for one of the two, for none: more room for weights, or for larger chunks."""
    several = len(segment.rings.turns) > 1
    for reads_ahead in (True, False) if several and segment.arrives else (True,):
        for writes_behind in (True, False) if several and segment.target == "stored" else (True,):
            yield replace(segment, reads_ahead=reads_ahead, writes_behind=writes_behind)


# --- what need not be swapped: weights that stay in flash, feature maps that stay in SRAM


def choices(
    segments: Sequence[Segment], rates: Rates, flash_bytes: int
) -> Iterator[frozenset[str]]:
    """Sets of weights that ``flash_bytes`` hold: first those that the card reads most often, then
    those that the core waits for longest; a tensor stays whole or not at all, and not where
    computing from flash takes longer than reading it from the card."""
    found = dict[str, tuple[float, float, int]]()
    for segment in segments:
        times = segment.times(rates)
        for n, layer in enumerate(segment.layers):
            again = n == segment.streamed and not segment.all_held
            often = len(segment.rings.turns) if again else 1
            read_us = often * rates.move_us(layer.weight_bytes, writes=False)
            if rates.compute_us(layer.work * (layer.slower - 1)) < read_us:
                found[layer.weight] = often, times.io - times.cpu, layer.weight_bytes
    for rank in (0, 1):
        left, held = flash_bytes, set[str]()
        for name in sorted(found, key=lambda name: (-found[name][rank], -found[name][2])):
            if (size := found[name][2]) <= left:
                left -= size
                held.add(name)
        if held:
            yield frozenset(held)


def maps_stay_bytes(search: Search) -> int:
    """SRAM from which on no feature map but the input and the output passes the card, tiles of
    weights included: the least over all cuts into segments; ``NEVER`` where some layer's readers
    are further apart than a segment is long."""
    last = len(search.layers) - 1

    def offer(start: int, stop: int, kept: bool, target: Place) -> int | None:
        if (kept, target) != (start > 0, "kept" if stop < last else "stored"):
            return None
        forms = search.plain(start, stop, kept, target, {1, search.layers[stop].rows})
        narrow = (replace(each, reads_ahead=False, writes_behind=False) for each in forms)
        alone = (each.least_bytes for each in narrow if len(each.rings.outside) == 1)
        return min(alone, default=None)

    least = search.least(last + 1, offer, max, 0)
    return NEVER if least is None else least


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
