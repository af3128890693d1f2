"""What no schedule can be faster than, with these rates and this much SRAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.strategies.swap.layers import Layer
from pipeline.strategies.swap.segments import needed


@dataclass(frozen=True)
class Bound:
    """``by``: ``cpu``, ``io``, ``path`` or ``weights`` (see ``bounds``)."""

    us: float
    by: str


def bounds(
    layers: Sequence[Layer], graph: Graph, sram_bytes: int, rates: Rates, frames: int
) -> Bound:
    """The largest of

    - cpu: all work, one step after the other;
    - io: every weight is read at least once, every input too, and every output written;
    - path: the first input that some work needs, all work, the last output's first byte;
    - weights: before a layer's first multiplication all work that one element of its source is made
      of is done, and SRAM holds no more than its bytes of the weights of this layer and those
      after it, none of which was used yet: the rest is read after that.
    """
    work = sum(layer.work for layer in layers)
    weights = [layer.weight_bytes for layer in layers]
    read_us, write_us = rates.read.byte_us, rates.write.byte_us
    inputs, outputs = _input_bytes(layers[0]), graph.tensors[graph.output].size
    found = {
        "cpu": frames * rates.compute_us(work),
        "io": (sum(weights) + frames * inputs) * read_us + frames * outputs * write_us,
        "path": read_us + frames * rates.compute_us(work) + write_us,
    }
    least = 0.0
    for number in range(1, len(layers)):
        left = max(0, sum(weights[number:]) - sram_bytes)
        before = rates.compute_us(cone(layers[:number]))
        least = max(least, before + left * read_us + write_us)
    found["weights"] = least
    by = max(found, key=lambda name: found[name])
    return Bound(found[by], by)


def _input_bytes(first: Layer) -> int:
    """Of the input that is read at all: a stride may step over some rows."""
    if first.windows is None:
        return first.source_bytes
    rows, columns = (_touched(first, axis) for axis in (0, 1))
    return rows * columns * first.source_shape[2]


def _touched(layer: Layer, axis: int) -> int:
    assert layer.windows is not None
    window, extent = layer.windows[axis], layer.source_shape[axis]
    starts = (o * window.stride + window.offset for o in range(layer.shape[axis]))
    taps = {start + t * window.dilation for start in starts for t in range(window.count)}
    return sum(0 <= tap < extent for tap in taps)


def cone(layers: Sequence[Layer]) -> float:
    """The least work before one element of the last target exists."""
    (rows, columns, _), ends = layers[-1].shape, list[float]()
    for row, column in ((0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1)):
        ends.append(_cone(layers, (row, row + 1), (column, column + 1)))  # padding makes them least
    return min(ends)


def _cone(layers: Sequence[Layer], rows: tuple[int, int], columns: tuple[int, int]) -> float:
    total, channels = 0.0, 1
    for layer in reversed(layers):
        elements = max(0, rows[1] - rows[0]) * max(0, columns[1] - columns[0])
        total += layer.work * elements * channels / prod(layer.shape)
        if not layer.channelwise:
            channels = layer.source_shape[-1]
        if layer.windows is None:
            shape = layer.source_shape
            rows, columns = (0, shape[0]), (0, shape[1] if len(shape) > 1 else 1)
            if len(shape) == 1:
                rows, columns = (0, 1), (0, 1)
            continue
        rows = needed(layer, rows)
        columns = _columns(layer, columns)
    return total


def _columns(layer: Layer, columns: tuple[int, int]) -> tuple[int, int]:
    assert layer.windows is not None
    low, high = layer.windows[1].span(*columns)
    limit = layer.source_shape[1]
    return max(0, min(low, limit)), max(0, min(high, limit))
