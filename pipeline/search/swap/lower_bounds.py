"""Bounds that no schedule can beat, with these rates and this much SRAM."""

from collections.abc import Sequence
from itertools import product, starmap
from math import prod
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates, Transfers
from pipeline.schedules.bounds import taps
from pipeline.search.view.tiles import TiledLayer


class Bound(NamedTuple):
    """``by``: what it is due to, see ``lower_bound``; ``cpu_us``: that of ``cpu``."""

    us: float
    by: str
    cpu_us: float

    @property
    def overhead_pct(self) -> float:
        """By how much every schedule takes longer than computing alone."""
        return 100 * (self.us / self.cpu_us - 1)


def lower_bound(
    layers: Sequence[TiledLayer], graph: Graph, sram_bytes: int, rates: Rates, frames: int,
    flash_bytes: int = 0,
) -> Bound:  # fmt: skip
    """Return the largest of

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
    rows, columns, _ = layers[-1].shape
    work, parts = behind(layers, Part(1.0, set(range(rows)), set(range(columns))))
    shape = graph.tensors[graph.start].shape
    row_bytes = prod(shape[2:] if len(shape) == 3 else shape)
    inputs = int(parts[graph.start].pixels * row_bytes) if graph.start in parts else 0
    weights = max(0, sum(layer.weight_bytes for layer in layers) - flash_bytes)
    read_us = passing_us(rates.read, rates, sram_bytes)
    write_us = passing_us(rates.write, rates, sram_bytes)
    last_us = rates.move_us(1, writes=True)
    outputs, cpu_us = graph.tensors[graph.end].size, frames * rates.compute_us(work)
    found = {
        "cpu": cpu_us,
        "io": (weights + frames * inputs) * read_us + frames * outputs * write_us,
        "path": rates.move_us(1, writes=False) + cpu_us + last_us,
        "weights": 0.0,
    }
    for number in range(1, len(layers)):
        made, later = set[str](), 0  # by that layer and those that cannot begin before it has
        for layer in layers[number:]:
            if not made or made & {source.tensor for source in layer.sources}:
                made.add(layer.target)
                later += layer.weight_bytes
        left = max(0, later - sram_bytes - flash_bytes)
        least_us = rates.compute_us(before(layers[: number + 1])) + left * read_us + last_us
        found["weights"] = max(found["weights"], least_us)
    if not rates.dma:
        found["cpu and io"] = found["cpu"] + found["io"]
    by = max(found, key=lambda name: found[name])
    return Bound(found[by], by, cpu_us)


def passing_us(rate: Transfers, rates: Rates, sram_bytes: int) -> float:
    """Return the least time that a byte takes in one of many transfers."""
    return rate.byte_us + rate.block_us / rates.block_bytes + rate.command_us / max(1, sram_bytes)


class Part(NamedTuple):
    """Part of a tensor: a share of its channels, some rows and some columns of it."""

    share: float
    rows: set[int]
    columns: set[int]

    @property
    def pixels(self) -> float:
        return len(self.rows) * len(self.columns) * self.share


def before(layers: Sequence[TiledLayer]) -> float:
    """The least work before the last layer makes its first element: padding makes corners least."""
    rows, columns, channels = layers[-1].shape
    own = layers[-1].work / (rows * columns * channels)
    corners = product((0, rows - 1), (0, columns - 1))
    return min(behind(layers, Part(1 / channels, {r}, {c}))[0] - own for r, c in corners)


def behind(layers: Sequence[TiledLayer], made: Part) -> tuple[float, dict[str, Part]]:
    """Return the least work behind ``made`` of the last target, and what that takes of each tensor.
    What several layers read is as much as the one that reads most of it."""
    parts, work = {layers[-1].target: made}, 0.0
    for layer in reversed(layers):
        if layer.target not in parts:
            continue
        part, (rows, columns, _) = parts[layer.target], layer.shape
        work += layer.work * part.pixels / (rows * columns)
        for source in layer.sources:
            extents = source.shape[:2] if len(source.shape) == 3 else (1, 1)
            if source.windows is None:
                read = Part(1.0, *(set(range(extent)) for extent in extents))
            else:  # some channels of the target may need none where these are moved alone
                axes = zip(source.windows, part[1:], extents, strict=True)
                share = float(part.share == 1 or bool(layer.weight))
                read = Part(part.share if layer.channelwise else share, *starmap(taps, axes))
            if source.tensor not in parts or read.pixels > parts[source.tensor].pixels:
                parts[source.tensor] = read
    return work, parts
