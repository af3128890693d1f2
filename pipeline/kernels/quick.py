"""The end of a fast kernel's sums: TFLite's requantization in four instructions, where exact.

With a multiplier m < 2**31 and a right shift e >= 1 TFLite computes, of a sum v,

    x = (v * m + 2**30) >> 31           SMMLAR of 2v and m
    y = (x + 2**(e - 1) - [x < 0]) >> e     halves away from zero

and y plus the zero point is clipped. Half and zero point, times 2**e, are one addend of the SMMLAR.
The sign of x is that of v wherever it matters; where the clip cuts off all below the zero point,
it never does. Where e is 0 for all channels, as in networks that are quantized here, the SMMLAR
with the zero point as its addend is all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.families import Pairwise, Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Clip, Operator, clipped_to, limits, product_sums
from pipeline.graph.requant import FixedPoint, Requant
from pipeline.graph.tensor import IntArray, Tensor

REACH = 1 << 31

Reals = NDArray[np.float64]
Kind = TypeVar("Kind", bound=Operator)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Quick:
    """Ends of sums, by channel: ``constants`` (channels, 3) are multiplier, offset and shift.

    Attributes:
        signed: results below the zero point are seen.
        once: all shifts are 0.
        low, high: what is stored is clipped to them, where its type alone does not do it.
    """

    constants: IntArray
    signed: bool
    once: bool
    low: int | None
    high: int | None


def element_end(op: Pairwise, graph: Graph) -> Quick | None:
    """Return how sums or products of two elements end; None where ``quick`` finds no way."""
    sums = np.array([op.partial_sums(graph.tensors, graph.constants)])
    return quick(graph.tensors[op.output], op.clip, op.requant, sums)


def quick(target: Tensor, clip: Clip, requant: Requant, sums: IntArray) -> Quick | None:
    """
    Args:
        sums: (channels, 2): the least and greatest sum of each channel, bias included.
    """
    if not isinstance(requant, FixedPoint) or target.dtype.bits != 8:
        return None
    settled = constants(target, clip, requant, sums)
    sums = np.where(np.isnan(settled)[:, None], sums, 0)
    count, zero = len(sums), target.zero_point
    multipliers = np.broadcast_to(np.array(requant.multipliers, dtype=np.int64), count)
    exponents = -np.broadcast_to(np.array(requant.shifts, dtype=np.int64), count)
    multipliers = np.where(np.isnan(settled), multipliers, 0)
    once = not exponents[multipliers > 0].any()
    exponents = np.where(multipliers == 0, 0 if once else 1, exponents)
    if exponents.min() < (0 if once else 1) or exponents.max() > 30:
        return None
    largest = np.abs(sums).max(axis=1)
    stored = np.where(np.isnan(settled), zero, settled).astype(np.int64)
    offsets = (1 << exponents >> 1) + stored * (1 << exponents)
    reached = (largest * multipliers >> 31) + np.abs(offsets) + 2
    if (2 * largest).max() >= REACH or reached.max() >= REACH:
        return None
    low, high = limits(target, clip)
    return Quick(
        np.stack([multipliers, offsets, exponents], axis=1),
        signed=low < zero and not once,
        once=once,
        low=low if low > target.dtype.minimum else None,
        high=high if high < target.dtype.maximum else None,
    )


def constants(target: Tensor, clip: Clip, requant: FixedPoint, sums: IntArray) -> Reals:
    """(channels,): what a channel stores whatever the input, NaN where that depends.

    Stored integers never fall as sums rise, so the ends of ``sums`` decide.
    """
    if np.abs(sums).max() >= REACH:
        return np.full(len(sums), np.nan)
    low, high = (clipped_to(target, clip, requant.apply(end)) for end in sums.T)
    return np.where(low == high, low, np.nan)


def once_a_layer(
    found: Callable[Concatenate[Kind, Graph, P], T],
) -> Callable[Concatenate[Kind, Graph, P], T]:
    """Compute what is asked for each form of a layer once, and keep it as long as its graph."""
    every: dict[object, tuple[ref[Graph], T]] = {}

    def of(op: Kind, graph: Graph, /, *more: P.args, **named: P.kwargs) -> T:
        key = id(graph), op.name, more
        known = every.get(key)
        if known is None or known[0]() is not graph:
            made = found(op, graph, *more, **named)
            known = every[key] = ref(graph, lambda _: every.pop(key, None)), made
        return known[1]

    return of


@once_a_layer
def channel_sums(op: Weighted, graph: Graph) -> IntArray:
    """(channels, 2): the least and greatest sum of any part of a channel's products."""
    return product_sums(graph.constants[op.parameters[0]], graph.tensors[op.inputs[0]])


def endings(op: Weighted, graph: Graph, outputs: int) -> Mapping[str, float]:
    """Instructions that end ``outputs`` sums beyond the fewest, by what they are for."""
    return endings_of(quick_end(op, graph), outputs)


def endings_of(end: Quick | None, outputs: int) -> Mapping[str, float]:
    if end is None:
        return {}
    return {
        "clip": outputs * ((end.low is not None) + (end.high is not None)),
        "shift": outputs * (0 if end.once else 3 if end.signed else 1),
    }


@once_a_layer
def quick_end(op: Weighted, graph: Graph) -> Quick | None:
    """Return how the sums of a layer end; None where ``quick`` finds no way."""
    sums = channel_sums(op, graph) + graph.constants[op.parameters[1]][:, None]
    return quick(graph.tensors[op.output], op.clip, op.requant, sums)
