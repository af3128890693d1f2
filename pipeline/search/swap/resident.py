"""What need not be swapped: weights that stay in flash, and in how much SRAM all of them, or all
feature maps, stay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache

from pipeline.plan.rates import Rates
from pipeline.search.swap.layers import TiledLayer
from pipeline.search.swap.search import LONGEST, Search
from pipeline.search.swap.segments import Place, Segment

CODE_BYTES = 1 << 18
"""Of flash, left to the program; the build says what it takes."""
NEVER = 1 << 62


def staying(layers: Sequence[TiledLayer], weights: Collection[str]) -> tuple[TiledLayer, ...]:
    """The same layers, with these weights on the chip."""
    return tuple(
        replace(
            layer, weight="", row_bytes=0, fixed=(layer.weight, *layer.fixed),
            work=layer.work * layer.slower,
        )
        if layer.weight in weights and layer.weight
        else layer
        for layer in layers
    )  # fmt: skip


def choices(
    segments: Sequence[Segment], rates: Rates, flash_bytes: int
) -> Iterator[frozenset[str]]:
    """Sets of weights that ``flash_bytes`` hold: first those that the card reads most often, then
    those that the core waits for longest; a tensor stays whole or not at all, and not where
    computing from flash takes longer than reading it from the card."""
    times, waits, sizes = dict[str, float](), dict[str, float](), dict[str, int]()
    for segment in segments:
        for n, layer in enumerate(segment.layers):
            if layer.weight:
                again = n == segment.streamed and not segment.all_held
                times[layer.weight] = len(segment.rings.turns) if again else 1
                read_us = times[layer.weight] * rates.move_us(layer.weight_bytes, writes=False)
                if rates.compute_us(layer.work * (layer.slower - 1)) < read_us:
                    sizes[layer.weight] = layer.weight_bytes
                waits[layer.weight] = segment.io_us(rates) - segment.cpu_us(rates)
    orders = [
        sorted(sizes, key=lambda name: (-times[name], -sizes[name])),
        sorted(sizes, key=lambda name: (-waits[name], -sizes[name])),
    ]
    for order in orders:
        left, held = flash_bytes, set[str]()
        for name in order:
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
            here = min(_needs(search, start, stop), default=NEVER)
            if here < least:
                least = min(least, max(here, rest(stop + 1)))
        return least

    return rest(0)


def weights_stay_bytes(search: Search, flash_bytes: int) -> int:
    """SRAM from which on no weight is read twice: what flash does not hold lies beside the maps."""
    left, beside, held = flash_bytes, 0, set[str]()
    for layer in sorted(search.layers, key=lambda layer: -layer.weight_bytes):
        held.add(layer.weight)
        if layer.weight_bytes <= left:
            left -= layer.weight_bytes
        else:
            beside += layer.weight_bytes
    return beside + maps_stay_bytes(
        Search(staying(search.layers, held), 0, search.rates, search.grain)
    )


def _needs(search: Search, first: int, last: int) -> Iterator[int]:
    layers = search.layers[first : last + 1]
    if len(layers) > 1 and any(layer.windows is None for layer in layers):
        return
    if any(until > last for until in search.read_until[first:last]):
        return
    source: Place = "kept" if first else "stored"
    target: Place = "stored" if last == len(search.layers) - 1 else "kept"
    outside = search.outside(first, last, source)
    if len(outside) != 1:
        return
    for chunk in {1, layers[-1].shape[0]}:
        rings = search.ring(first, last, chunk)
        plain = Segment(
            layers, rings, outside, source, target, grain=search.grain, reads_ahead=False,
            writes_behind=False,
        )  # fmt: skip
        if layers[0].windows or not layers[0].weight:
            yield plain.needed_bytes
        for n, layer in enumerate(layers):
            if layer.weight and not layer.channelwise:
                yield replace(plain, streamed=n, tile=1, copies=search.copies[0]).needed_bytes
