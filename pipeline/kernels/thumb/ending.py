"""The end of a sum on a core without a long multiplication: two products of 32 bits and a shift,
where that is exact.

Of a sum v, as far above the first that is not clipped as ``r``, the stored byte is the uppermost of

    r * whole + ((r >> coarse) * part >> bits - coarse) + offset      modulo 2**32

``whole`` and ``part`` are 2**24 times the layer's scale, in units of 1 and of 2**-bits: the
more of a large ``r`` is dropped, the more bits the part may have. TFLite
rounds halves away from zero, twice, so results below the zero point have another offset, by
``step``. What the graph stores rises with the sum, so it is enough to compare both at each sum
where it does: ``narrow_end`` computes these, and finds the offsets with which all are right.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operator import clipped_to, limits
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray
from pipeline.kernels.fast import Fast
from pipeline.kernels.form import Form
from pipeline.kernels.quick import REACH, channel_sums, once_a_layer

SUMS = 4
"""Registers that sums are in, r8 to r11: of pixels, or of channels."""

UNIT = 24
"""Bits below the byte that is stored."""

MOST_BITS = 16
MOST_COARSE = 4
NEAR = (0, 1, -1, 2, -2, 3, -3)
"""Numbers to add to a scale, in this order, until there are offsets."""

LEAST = 2.0**-62
ANY = (1 << 32) - 1
"""Bound for a channel that stores the same whatever its sum: nothing is greater."""

NEIGHBOURS = 4
"""Sums by which rounding twice may move a rise from where a real scale has it."""


@dataclass(frozen=True)
class Narrow:
    """
    Attributes:
        base: (channels,): the sum, bias included, that ``r`` counts from.
        constants: (channels, 4): the greatest ``r`` that is not clipped, ``part``, ``whole``, and
            the offset.
        steps: (channels, 2): the first ``r`` that ``step`` is added for, and that; None: for none.
        bits: of ``part``; ``coarse``: of r that it is not multiplied with.
        low, high: the bytes that are stored of sums below and above.
    """

    base: IntArray
    constants: IntArray
    steps: IntArray | None
    bits: int
    coarse: int
    low: int
    high: int

    @property
    def stepped(self) -> bool:
        """Check whether results below the zero point end otherwise than those above."""
        return self.steps is not None

    @property
    def words(self) -> IntArray:
        """(channels, 4 or 6): of each channel, as ``nn_narrow`` reads them."""
        steps = [] if self.steps is None else [self.steps]
        return np.concatenate([self.constants, *steps], axis=1)

    def stored(self, sums: IntArray) -> IntArray:
        """(n, channels) -> bytes, as the kernels compute them, by their values modulo 256."""
        most, part, whole, offset = self.constants.T
        r = sums - self.base
        below = (r < 0) & (most < ANY)
        scaled = ((r >> self.coarse) * part & 0xFFFFFFFF) >> self.bits - self.coarse
        value = r * whole + scaled + offset
        if self.steps is not None:
            first, step = self.steps.T
            value = value + np.where(r >= first, step, 0)
        inside = (value & 0xFFFFFFFF) >> UNIT
        return np.where(below, self.low, np.where(r > most, self.high, inside))


@once_a_layer
def narrow_end(op: Weighted, graph: Graph) -> Narrow | None:
    """Return how the sums of a layer end; None where this does not give what the graph does."""
    target, requant = graph.tensors[op.output], op.requant
    if target.dtype.bits != 8 or not isinstance(requant, FixedPoint):
        return None
    sums = channel_sums(op, graph) + graph.constants[op.parameters[1]][:, None]
    if np.abs(sums).max() >= REACH:
        return None
    low, high = limits(target, op.clip)

    def stored(values: IntArray) -> IntArray:
        """(n, channels) sums -> what the graph stores."""
        return clipped_to(target, op.clip, requant.apply(values))

    first, last = stored(sums.T)  # of the least and of the greatest sum
    flat = first == last  # as converters leave dead channels, with biases beyond all others
    sums = np.where(flat[:, None], 0, sums)
    if np.abs(sums).max() >= REACH // 2:
        return None
    levels = np.arange(low + 1, high + 1)
    scales = np.ldexp(requant.multipliers, np.array(requant.shifts) - 31)
    scales = np.maximum(np.broadcast_to(scales, len(sums)), LEAST)  # 0 is as good as nothing
    near = np.clip((levels[:, None] - target.zero_point - 0.5) / scales, -REACH, REACH)
    rises = _rises(stored, levels, sums, near.astype(np.int64))  # (levels, channels)
    reached = (levels[:, None] > first) & (levels[:, None] <= last)
    # where sums can be clipped, r begins just below the first rise, and ends at the last
    begins = np.where(reached, rises, REACH).min(axis=0, initial=REACH) - 1
    ends = np.where(reached, rises, -REACH).max(axis=0, initial=-REACH)
    base = np.where(flat | (first != low), sums[:, 0], begins)
    most = np.where(flat | (last != high), sums[:, 1], ends) - base
    units = np.where(flat, 0.0, scales * (1 << UNIT))
    channels = [
        (units[n], int(most[n]), int(first[n]), rises[reached[:, n], n] - base[n])
        for n in range(len(sums))
    ]
    long = int(most.max()).bit_length()
    for coarse in range(MOST_COARSE + 1):
        bits = min(MOST_BITS, 32 - max(long - coarse, 0))
        every = (_offsets(*each, bits, coarse, target.zero_point) for each in channels)
        rows = list(takewhile(bool, every))  # up to the first that has none
        if len(rows) == len(channels):
            found = np.array(rows, dtype=np.int64)
            steps = found[:, 3:] if found[:, 4].any() else None
            most = np.where(flat, ANY, most)
            constants = np.concatenate([most[:, None], found[:, :3]], axis=1)
            return Narrow(base, constants, steps, bits, coarse, low & 255, high & 255)
    return None


def _rises(
    stored: Callable[[IntArray], IntArray], levels: IntArray, sums: IntArray, near: IntArray
) -> IntArray:
    """(levels, channels): the least sum of which ``stored`` is at least the level, between the ends
    of ``sums``; beyond them where there is none. It is not far from ``near``, or looked for
    everywhere."""
    least, most = sums[:, 0] - 1, sums[:, 1] + 1
    low, high = (np.clip(near + apart, least, most) for apart in (-NEIGHBOURS, NEIGHBOURS))
    low = np.where((low > least) & (stored(low) >= levels[:, None]), least, low)
    high = np.where((high < most) & (stored(high) < levels[:, None]), most, high)
    while (high - low).max(initial=0) > 1:
        middle = (low + high) >> 1
        enough = stored(middle) >= levels[:, None]
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high


def _offsets(
    scale: float, most: int, first: int, rises: IntArray, bits: int, coarse: int, centre: int
) -> tuple[int, int, int, int, int] | None:
    """``part``, ``whole``, offset, and the first ``r`` that a step is added for and that; None
    where there are none.

    Args:
        scale: 2 ** UNIT times the real one.
        most: r; ``first``: what is stored of r = 0; ``rises``: r of which one more is, two, …
        centre: the zero point.
    """
    levels = first + 1 + np.arange(len(rises))  # of which the rises are the least
    below = int((levels <= centre).sum())
    for more in NEAR:
        factor = round(scale * (1 << bits)) + more
        if factor < 0:
            continue
        whole, part = factor >> bits, factor & (1 << bits) - 1

        def line(r: IntArray | int, whole: int = whole, part: int = part) -> IntArray:
            return np.asarray(r * whole + ((r >> coarse) * part >> bits - coarse))

        once = _offset(line, rises, levels, (0, first), (most, first + len(rises)))
        if once is not None:
            return part, whole, once, 0, 0
        if 0 < below < len(rises):
            step = int(rises[below - 1] + rises[below]) // 2 + 1
            edge, end = (step - 1, first + below), (most, first + len(rises))
            left = _offset(line, rises[:below], levels[:below], (0, first), edge)
            right = _offset(line, rises[below:], levels[below:], (step, first + below), end)
            if left is not None and right is not None:
                return part, whole, left, step, right - left
    return None


def _offset(
    line: Callable[[IntArray | int], IntArray],
    rises: IntArray,
    levels: IntArray,
    begin: tuple[int, int],
    end: tuple[int, int],
) -> int | None:
    """Return what to add to ``line`` so that it rises as it has to between ``begin`` and ``end``,
    both (r, level); None where nothing does."""
    reached, not_yet = (levels << UNIT) - line(rises), (levels << UNIT) - 1
    least = max((begin[1] << UNIT) - int(line(begin[0])), int(reached.max(initial=-(1 << 62))))
    most = min(
        (end[1] + 1 << UNIT) - 1 - int(line(end[0])),
        int((not_yet - line(rises - 1)).min(initial=1 << 62)),
    )
    return (least + most) // 2 if least <= most else None


class ThumbKernel(Fast):
    """``costs`` are those of a Cortex-M0+; a Cortex-M3 takes as many cycles, within 4 %."""

    core = "thumb"


def ends(form: Form) -> bool:
    """Check whether all channels are made, and sums end by products of 32 bits."""
    whole = form.out.extents[-1] == form.target.shape[-1]
    return whole and isinstance(form.op, Weighted) and narrow_end(form.op, form.graph) is not None


def stepped(form: Form) -> bool:
    """See ``Narrow``."""
    end = narrow_end(form.op, form.graph) if isinstance(form.op, Weighted) else None
    return end is not None and end.stepped
