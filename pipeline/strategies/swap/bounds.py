"""What no schedule can be faster than, with these rates and this much SRAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.graph.access import Window
from pipeline.graph.graph import Graph
from pipeline.plan.rates import Rates
from pipeline.strategies.swap.layers import Layer


@dataclass(frozen=True)
class Bound:
    """``by``: ``cpu``, ``io``, ``path`` or ``weights`` (see ``bounds``)."""

    us: float
    by: str


def bounds(
    layers: Sequence[Layer], graph: Graph, sram_bytes: int, rates: Rates, frames: int
) -> Bound:
    """The largest of

    - cpu: all work that the output depends on, one step after the other;
    - io: every weight is read at least once, every needed input too, and every output written;
    - path: a first byte of input, all work, the output's last byte;
    - weights: before a layer's first multiplication all work is done that one element of its source
      is made of, and SRAM then holds no more than its bytes of the weights of this layer and those
      after it, none of which was used yet: the rest is read after that.
    """
    work, inputs = _needed(layers, _all(layers[-1].shape[0]), _all(layers[-1].shape[1]), 1.0)
    weights = [layer.weight_bytes for layer in layers]
    read_us, write_us = rates.read.byte_us, rates.write.byte_us
    outputs = graph.tensors[graph.output].size
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


def cone(layers: Sequence[Layer]) -> float:
    """The least work before one element of the last target exists: padding makes corners least."""
    (rows, columns, channels), ends = layers[-1].shape, list[float]()
    for row, column in ((0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1)):
        ends.append(_needed(layers, {row}, {column}, 1 / channels)[0])
    return min(ends)


def _all(extent: int) -> set[int]:
    return set(range(extent))


def _needed(
    layers: Sequence[Layer], rows: set[int], columns: set[int], share: float
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
                _taps(window, out, extent)
                for window, out, extent in zip(
                    layer.windows, (rows, columns), layer.source_shape[:2], strict=True
                )
            )
    first = layers[0].source_shape
    depth = first[2] if len(first) == 3 else first[0]
    return total, int(len(rows) * len(columns) * depth * share)


def _taps(window: Window, out: set[int], extent: int) -> set[int]:
    """Indices of the source that outputs ``out`` read."""
    taps = {
        window.span(o, o + 1)[0] + t * window.dilation for o in out for t in range(window.count)
    }
    return {tap for tap in taps if 0 <= tap < extent}
