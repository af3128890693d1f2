"""What no schedule can be faster than, with these rates and this much SRAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.schedules.bounds import taps
from pipeline.search.swap.layers import TiledLayer


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
    layers: Sequence[TiledLayer], graph: Graph, sram_bytes: int, rates: Rates, frames: int
) -> Bound:
    """The largest of

    - cpu: all work that the output depends on, one step after the other;
    - io: every weight is read at least once, every needed input too, and every output written;
    - path: a first byte of input, all work, the output's last byte;
    - weights: before a layer's first computation all work is done that one element of its target is
      made of, and SRAM then holds no more than its bytes of the weights of this layer and those
      after it, none of which was used yet: the rest is read after that.

    The last one holds for schedules that make an element in one step, from sources that are
    complete: before a dense layer's first computation comes all work before it. A schedule that
    keeps partial sums of it could begin earlier.
    """
    work, inputs = _needed(layers, _all(layers[-1].shape[0]), _all(layers[-1].shape[1]), 1.0)
    weights = [layer.weight_bytes for layer in layers]
    read_us, write_us = rates.read.byte_us, rates.write.byte_us
    outputs, cpu_us = graph.tensors[graph.output].size, frames * rates.compute_us(work)
    found = {
        "cpu": cpu_us,
        "io": (sum(weights) + frames * inputs) * read_us + frames * outputs * write_us,
        "path": read_us + cpu_us + write_us,
        "weights": 0.0,
    }
    for number in range(1, len(layers)):
        left = max(0, sum(weights[number:]) - sram_bytes)
        least_us = rates.compute_us(before(layers[: number + 1])) + left * read_us + write_us
        found["weights"] = max(found["weights"], least_us)
    by = max(found, key=lambda name: found[name])
    return Bound(found[by], by, cpu_us)


def before(layers: Sequence[TiledLayer]) -> float:
    """The least work before the last layer makes its first element: padding makes corners least."""
    (rows, columns, channels), ends = layers[-1].shape, list[float]()
    own = layers[-1].work / (rows * columns * channels)
    for row, column in ((0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1)):
        ends.append(_needed(layers, {row}, {column}, 1 / channels)[0] - own)
    return min(ends)


def _all(extent: int) -> set[int]:
    return set(range(extent))


def _needed(
    layers: Sequence[TiledLayer], rows: set[int], columns: set[int], share: float
) -> tuple[float, int]:
    """The work behind rows x columns, and that share of the channels, of the last target; the bytes
    of the first source that it reads."""
    total = 0.0
    for layer in reversed(layers):
        high, wide, _ = layer.shape
        total += layer.work * len(rows) * len(columns) * share / (high * wide)
        if not layer.channelwise:
            share = 1.0
        if layer.windows is None:
            image = layer.source_shape if len(layer.source_shape) == 3 else (1, 1)
            rows, columns = _all(image[0]), _all(image[1])
        else:
            rows, columns = (
                taps(window, out, extent)
                for window, out, extent in zip(
                    layer.windows, (rows, columns), layer.source_shape[:2], strict=True
                )
            )
    first = layers[0].source_shape
    depth = first[2] if len(first) == 3 else first[0]
    return total, int(len(rows) * len(columns) * depth * share)
