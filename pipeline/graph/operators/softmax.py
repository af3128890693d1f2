"""Softmax over the last axis in integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.graph.exponential import SUM_BITS, between, reciprocal
from pipeline.graph.families import OfOne
from pipeline.graph.operator import BoxValues, Tensors
from pipeline.graph.requant import FixedPoint, doubled_high, rounded_shift
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Softmax(OfOne):
    """TFLite's int8 SOFTMAX: probabilities of scale 1/256 and zero point -128.

    ``exponentials[d]`` is the exponential of an input ``d`` below its row's maximum, in Q0.31
    (``pipeline.graph.exponential.exponentials``).
    """

    exponentials: tuple[int, ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        for name in (self.inputs[0], self.output):
            if name in tensors and tensors[name].dtype.bits != 8:
                raise ThimbleError(f"{self.name}: softmax takes and gives 8 bits, {name} has not")
        if len(self.exponentials) != 256:
            raise ThimbleError(f"{self.name}: softmax needs 256 exponentials")
        if not all(0 <= value < 1 << 31 for value in self.exponentials):
            raise ThimbleError(f"{self.name}: an exponential of softmax is not of 0 to 2^31 - 1")
        return tensors[self.inputs[0]].shape

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        *rows, extent = tensors[self.inputs[0]].shape
        return *(Window(d) for d in range(len(rows))), Window(None, extent)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        target, x = tensors[self.output], self.given(tensors, out, regions)
        below = x.max(axis=-1, keepdims=True) - x
        powers = np.array(self.exponentials, dtype=np.int64)[below]
        total = rounded_shift(powers, SUM_BITS).sum(axis=-1, keepdims=True)
        scale, over = reciprocal(total)
        shares = rounded_shift(doubled_high(scale, powers), over + 31 - 8)
        stored = target.dtype.clip(shares + target.dtype.minimum)
        return stored[..., slice(*out[-1])]


@dataclass(frozen=True)
class WideSoftmax(Softmax):
    """TFLite's int16 SOFTMAX: probabilities of scale 1/32768.

    ``exponentials`` are 513 points of the exponential from -10 to 0, ``reciprocals`` of 1 / (1 + x)
    from 0 to 1, in Q0.15; ``requant`` takes differences to steps of 10 / 65535.
    """

    reciprocals: tuple[int, ...] = ()
    requant: FixedPoint = FixedPoint((0,), (0,))

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        if tensors[self.inputs[0]].dtype.bits != 16:
            raise ThimbleError(f"{self.name}: this softmax takes 16 bits")
        if not len(self.exponentials) == len(self.reciprocals) == 513:
            raise ThimbleError(f"{self.name}: softmax needs 513 exponentials and reciprocals")
        return tensors[self.inputs[0]].shape

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        x = self.given(tensors, out, regions)
        below = self.requant.apply(x - x.max(axis=-1, keepdims=True))
        powers = between(self.exponentials, below + 32767)
        total = powers.sum(axis=-1, keepdims=True)
        bits = np.frexp(np.maximum(total, 1))[1] - 1
        scale = between(self.reciprocals, ((total << 30 - bits) + (1 << 13) >> 14) - 98304)
        shares = powers * scale + (1 << bits >> 1) >> bits
        return np.asarray(shares.clip(0, 32767)[..., slice(*out[-1])])
