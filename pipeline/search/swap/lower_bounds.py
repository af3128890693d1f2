"""What no schedule can be faster than, with these rates and this much SRAM."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates, Transfers
from pipeline.schedules.bounds import taps
from pipeline.search.view.tiles import Source, TiledLayer


@dataclass(frozen=True)
class Bound:
    """``by``: what it is due to, see ``lower_bound``; ``cpu_us``: that of ``cpu``."""

    us: float
    by: str
    cpu_us: float

    @property
    def overhead_pct(self) -> float:
        """By how much every schedule takes longer than computing alone."""
        return 100 * (self.us / self.cpu_us - 1)


def lower_bound(
    layers: Sequence[TiledLayer],
    graph: Graph,
    sram_bytes: int,
    rates: Rates,
    frames: int,
    flash_bytes: int = 0,
) -> Bound:
    """The largest of

    - cpu: all work that the output depends on, one step after the other;
    - io: every weight that ``flash_bytes`` cannot hold is read at least once, every needed input
      too, and every output written;
    - cpu and io: both of these, where they take turns;
    - path: a first byte of input, all work, the output's last byte;
    - weights: before a layer's first computation all work is done that one element of its target is
      made of, and SRAM then holds no more than its bytes of the weights of this layer and those
      that need it, none of which was used yet: the rest is read after that.

    On a card a byte takes its share of a block, since every block with needed bytes passes whole,
    and of a command, since what a command brings has a place in SRAM each (``passing_us``); a first
    and a last byte take a command and a block.

    The last one holds for schedules that make an element in one step, from sources that are
    complete: before a dense layer's first computation comes all work before it. A schedule that
    keeps partial sums of it could begin earlier. What SRAM holds counts what a command that has
    begun by then brings: its place is taken.
    """
    work, inputs = _needed(layers, graph.input, _whole(layers[-1]))
    weights = max(0, sum(layer.weight_bytes for layer in layers) - flash_bytes)
    read_us = passing_us(rates.read, rates, sram_bytes)
    write_us = passing_us(rates.write, rates, sram_bytes)
    last_us = rates.move_us(1, writes=True)
    outputs, cpu_us = graph.tensors[graph.output].size, frames * rates.compute_us(work)
    found = {
        "cpu": cpu_us,
        "io": (weights + frames * inputs) * read_us + frames * outputs * write_us,
        "path": rates.move_us(1, writes=False) + cpu_us + last_us,
        "weights": 0.0,
    }
    for number in range(1, len(layers)):
        later = sum(each.weight_bytes for each in _after(layers, number))
        left = max(0, later - sram_bytes - flash_bytes)
        least_us = rates.compute_us(before(layers[: number + 1])) + left * read_us + last_us
        found["weights"] = max(found["weights"], least_us)
    if not rates.dma:
        found["cpu and io"] = found["cpu"] + found["io"]
    by = max(found, key=lambda name: found[name])
    return Bound(found[by], by, cpu_us)


def passing_us(rate: Transfers, rates: Rates, sram_bytes: int) -> float:
    """The least time that a byte takes in one of many transfers."""
    return rate.byte_us + rate.block_us / rates.block_bytes + rate.command_us / max(1, sram_bytes)


def _after(layers: Sequence[TiledLayer], number: int) -> list[TiledLayer]:
    """That layer and those that cannot begin before it has."""
    found = [layers[number]]
    for layer in layers[number + 1 :]:
        made = {each.target for each in found}
        if any(source.tensor in made for source in layer.sources):
            found.append(layer)
    return found


class Part(NamedTuple):
    """Of a tensor: some rows of it, some columns, and so much of its channels."""

    rows: set[int]
    columns: set[int]
    share: float

    @property
    def elements(self) -> float:
        return len(self.rows) * len(self.columns) * self.share


def before(layers: Sequence[TiledLayer]) -> float:
    """The least work before the last layer makes its first element: padding makes corners least."""
    last = layers[-1]
    (rows, columns, channels), ends = last.shape, list[float]()
    own = last.work / (rows * columns * channels)
    for row, column in ((0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1)):
        ends.append(_needed(layers, "", Part({row}, {column}, 1 / channels))[0] - own)
    return min(ends)


def _whole(layer: TiledLayer) -> Part:
    rows, columns, _ = layer.shape
    return Part(set(range(rows)), set(range(columns)), 1.0)


def _needed(layers: Sequence[TiledLayer], name: str, made: Part) -> tuple[float, int]:
    """The least work behind ``made`` of the last target; the bytes of the tensor ``name`` that it
    reads. What several layers read is as much as the one that reads most of it."""
    parts, total = {layers[-1].target: made}, 0.0
    sizes = {source.tensor: prod(source.shape) for layer in layers for source in layer.sources}
    for layer in reversed(layers):
        if layer.target not in parts:
            continue
        part, (rows, columns, _) = parts[layer.target], layer.shape
        total += layer.work * part.elements / (rows * columns)
        for source in layer.sources:
            read = _read(layer, source, part)
            if source.tensor not in parts or read.elements > parts[source.tensor].elements:
                parts[source.tensor] = read
    if name not in parts:
        return total, 0
    shape = next(s.shape for layer in layers for s in layer.sources if s.tensor == name)
    pixels = prod(shape[:2]) if len(shape) == 3 else 1
    return total, int(parts[name].elements * sizes[name] / pixels)


def _read(layer: TiledLayer, source: Source, part: Part) -> Part:
    image = source.shape[:2] if len(source.shape) == 3 else (1, 1)
    if source.windows is None:
        return Part(set(range(image[0])), set(range(image[1])), 1.0)
    share = part.share
    if layer.weight and not layer.channelwise:
        share = 1.0
    elif not layer.channelwise and share < 1:
        share = 0.0  # of some channels of the target maybe none
    rows, columns = (
        taps(window, out, extent)
        for window, out, extent in zip(
            source.windows, (part.rows, part.columns), image, strict=True
        )
    )
    return Part(rows, columns, share)
