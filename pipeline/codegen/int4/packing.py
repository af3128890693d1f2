"""Weights as the kernels read them: which lane is which channel, and the order in memory.

A kernel keeps one accumulator, a *lane*, for each output channel and visits the inputs of a window,
its *taps*, row-major. The weights of a tap lie side by side, lane after lane. 4-bit weights are
stored as unsigned nibbles w + 8, low nibble first. If the number of lanes is odd, odd taps begin
with their last lane, so that lanes (0, 1), (2, 3), … share a byte in every tap.

One multiplication of an activation a by a whole byte serves both lanes of a pair:
``S += a (16 hi + lo)`` and ``L += a lo`` give ``sum(a hi) = (S - L) / 16``. S is kept modulo 2**16,
hence hi modulo 2**12: a high lane must have a range of less than 2**12 (``Lanes.exact`` lists pairs
whose high lane has not). The range is known, because the weights are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import DType, IntArray
from pipeline.kernels.avr.window import NARROW

NIBBLE_OFFSET = 8


@dataclass(frozen=True)
class Lanes:
    """
    Attributes:
        channels: the output channel of each lane.
        exact: pairs whose lanes are summed apart.
        centre: for each pair, what brings the high lane's sum into -2048 … 2047 when added.
    """

    channels: tuple[int, ...]
    exact: tuple[int, ...] = ()
    centre: tuple[int, ...] = ()

    @property
    def pairs(self) -> int:
        return len(self.channels) // 2

    @property
    def identity(self) -> bool:
        return self.channels == tuple(range(len(self.channels)))


def bounds(weights: IntArray, source: DType) -> tuple[IntArray, IntArray]:
    """Smallest and largest sum of each output channel over all inputs: weights (c_out, taps)."""
    low = np.minimum(weights * source.minimum, weights * source.maximum).sum(axis=1)
    high = np.maximum(weights * source.minimum, weights * source.maximum).sum(axis=1)
    return low, high


def assign(low: IntArray, high: IntArray) -> Lanes:
    """Channels to lanes such that high lanes have narrow ranges; in order if that will do."""
    count, pairs = len(low), len(low) // 2
    width = high - low
    channels = list(range(count))
    if not all(width[c] < NARROW for c in channels[1 : 2 * pairs : 2]):
        narrow = sorted(sorted(channels, key=lambda c: int(width[c]))[:pairs])
        wide = [c for c in channels if c not in narrow]
        channels[1 : 2 * pairs : 2], channels[0 : 2 * pairs : 2] = narrow, wide[:pairs]
        channels[2 * pairs :] = wide[pairs:]
    his = [channels[2 * pair + 1] for pair in range(pairs)]
    fits = [int(width[c]) < NARROW for c in his]
    inside = [low[c] >= -NARROW // 2 and high[c] < NARROW // 2 for c in his]
    return Lanes(
        tuple(channels),
        tuple(pair for pair in range(pairs) if not fits[pair]),
        tuple(
            0 if inside[pair] or not fits[pair] else -NARROW // 2 - int(low[his[pair]])
            for pair in range(pairs)
        ),
    )


def lane_order(lanes: int, tap: int) -> Iterator[int]:
    """Return the lanes in the order their weights of ``tap`` are stored."""
    first = lanes - 1 if lanes % 2 and tap % 2 else 0
    return ((first + n) % lanes for n in range(lanes))


def pack_nibbles(weights: IntArray, lanes: Lanes, ascending: bool = False) -> list[int]:
    """(c_out, taps) weights of 4 bits -> bytes; ``ascending``: odd taps begin with lane 0, too."""
    stream = [
        int(weights[lanes.channels[lane], tap]) + NIBBLE_OFFSET
        for tap in range(weights.shape[1])
        for lane in lane_order(len(lanes.channels), 0 if ascending else tap)
    ]
    stream.extend([0] * (len(stream) % 2))
    return [low | high << 4 for low, high in zip(stream[::2], stream[1::2], strict=True)]


def pack_bytes(weights: IntArray, lanes: Lanes) -> list[int]:
    """(c_out, taps) weights of 8 bits -> int8 values in the same order, lanes always ascending."""
    return [int(w) for w in weights[list(lanes.channels)].T.reshape(-1)]
