"""Weights and what ends their sums, channel by channel, in the order in which assembly reads them.

A channel's sum begins with its bias less the zero points times its weights. Stored inputs have
their least value added to them, so that they count from 0 on; so have the weights of convolutions,
which then are multiplied unsigned (MUL), and 128 times the sum of a window's inputs is taken from
each of its sums instead. The end is TFLite's: twice the multiplier, of which bits 32 and up of the
product are the scaled sum; what is added to that; and the shift as a factor, whose product's upper
byte is the result.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.constants import Array
from pipeline.codegen.int8.job import Job
from pipeline.graph.families import Weighted
from pipeline.graph.operator import limits
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.kernels.quick import quick_end

START_BYTES = 3


@dataclass(frozen=True)
class End:
    """Facts that the assembly that ends sums has to know.

    Attributes:
        below: results below the zero point are seen; ``once``: nothing is shifted.
        shifts: ``low``, all channels by 1 to 8; ``high``, by 9 to 16; ``both``.
        low, high: what is stored is clipped to, counted from the type's least value.
        flip: what makes a stored byte of one that counts from 0.
    """

    below: bool
    once: bool
    shifts: str
    low: int
    high: int
    flip: int

    @property
    def bytes(self) -> int:
        """Count the stream's bytes for a channel."""
        return 7 + (not self.once) + (self.shifts == "both")


@dataclass(frozen=True)
class Stream:
    """
    Attributes:
        array: for each channel the start, ``inputs`` weights, and what ends it.
    """

    array: Array
    end: End
    inputs: int

    @property
    def load(self) -> str:
        """The instruction that reads it; ELPM takes RAMPZ as the address's upper byte."""
        return "elpm" if self.array.far else "lpm"

    @property
    def channel_bytes(self) -> int:
        return START_BYTES + self.inputs + self.end.bytes


def stream(job: Job, unsigned: bool) -> Stream:
    """
    Args:
        unsigned: weights have 128 added to them.
    """
    op, graph = job.operator(Weighted), job.program.graph
    weights, bias = (graph.constants[name] for name in op.parameters)
    quick = quick_end(op, graph)
    assert quick is not None
    multipliers, offsets, shifts = quick.constants.T
    known = multipliers == 0
    flat = weights.reshape(len(weights), -1).astype(np.int64)
    flat[known] = 0  # so that sums are 0, and what is added to them decides
    starts = np.where(known, 0, bias - from_least(job.source) * flat.sum(axis=1))
    target = job.target
    low, high = (end - target.dtype.minimum for end in limits(target, op.clip))
    kinds = {"low" if shift <= 8 else "high" for shift in shifts}
    shifted = "both" if len(kinds) > 1 else kinds.pop()
    below = low < from_least(target)
    end = End(below, quick.once, shifted, low, high, -target.dtype.minimum)
    columns = [
        _bytes(starts, START_BYTES),
        flat + 128 * unsigned & 255,
        _bytes(2 * multipliers, 4),
        _bytes(offsets - (target.dtype.minimum << shifts), 3),
    ]
    if not end.once:
        columns.append(_bytes(1 << (-shifts % 8), 1))
    if end.shifts == "both":
        columns.append(_bytes(np.asarray(shifts > 8, np.int64), 1))
    array = job.program.constants.add(
        op.name, "stream", "uint8_t", np.concatenate(columns, axis=1),
        f"{op.name}: of each channel what its sum begins with, weights, and how it ends",
        far=True,
    )  # fmt: skip
    return Stream(array, end, flat.shape[1])


def from_least(tensor: Tensor) -> int:
    """Return the zero point, counted from the type's least value."""
    return tensor.zero_point - tensor.dtype.minimum


def _bytes(values: IntArray, count: int) -> IntArray:
    """(channels,) -> (channels, count), the least significant first."""
    return np.asarray(values, np.int64)[:, None] >> 8 * np.arange(count) & 255
