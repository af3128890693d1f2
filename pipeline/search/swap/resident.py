"""What need not be swapped: weights that stay in flash, and in how much SRAM all of them, or all
feature maps, stay."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from pipeline.plan.rates import Rates
from pipeline.search.swap.search import LONGEST, Search
from pipeline.search.swap.segments import Place, Segment
from pipeline.search.view.tiles import staying

CODE_BYTES = 1 << 18
"""Of flash, left to the program; the build says what it takes."""
NEVER = 1 << 62


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
    return beside + maps_stay_bytes(Search(layers, 0, search.rates, search.grain))
