"""Operators for each element of which all along some axes is read: softmax, places of extremes,
normalization, products of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, prod
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph import broadcast
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.exponential import SUM_BITS, between, logarithm, reciprocal
from pipeline.graph.families import OfOne, Requantized
from pipeline.graph.operator import Clip, Constants, Regions, Tensors
from pipeline.graph.requant import FixedPoint, doubled_high, rounded_shift
from pipeline.graph.tensor import Box, IntArray

MOST = 1 << 16
"""Elements that are normalized together: their squares add up to 32 bits."""


@dataclass(frozen=True)
class Softmax(OfOne):
    """Over the last axis, TFLite's int8 SOFTMAX: probabilities of scale 1/256 and zero point -128.

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

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        target, x = tensors[self.output], self.given(tensors, out, regions)
        below = x.max(axis=-1, keepdims=True) - x
        powers = np.array(self.exponentials, dtype=np.int64)[below]
        total = rounded_shift(powers, SUM_BITS).sum(axis=-1, keepdims=True)
        stored = self.ended(below, powers, total) + target.dtype.minimum
        return target.dtype.clip(stored)[..., slice(*out[-1])]

    def ended(self, below: IntArray, powers: IntArray, total: IntArray) -> IntArray:
        """Return results above the least, of differences, their exponentials and these's sums."""
        scale, over = reciprocal(total)
        return rounded_shift(doubled_high(scale, powers), over + 31 - 8)


@dataclass(frozen=True)
class LogSoftmax(Softmax):
    """TFLite's int8 LOG_SOFTMAX: logarithms of scale 1/16 and zero point 127.

    ``differences[d]`` is an input ``d`` below its row's maximum, in Q5.26, no less than -20:
    what is less than -16 is not stored.
    """

    differences: tuple[int, ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        if len(self.differences) != 256 or min(self.differences) < -20 << 26:
            raise ThimbleError(f"{self.name}: logarithms need 256 differences of -20 or more")
        return super().infer(tensors)

    def ended(self, below: IntArray, powers: IntArray, total: IntArray) -> IntArray:
        logs = np.array(self.differences, dtype=np.int64)[below] - logarithm(total)
        return rounded_shift(logs, 22) + 255


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

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        x = self.given(tensors, out, regions)
        below = self.requant.apply(x - x.max(axis=-1, keepdims=True))
        powers = between(self.exponentials, below + 32767)
        total = powers.sum(axis=-1, keepdims=True)
        bits = np.frexp(np.maximum(total, 1))[1] - 1
        scale = between(self.reciprocals, ((total << 30 - bits) + (1 << 13) >> 14) - 98304)
        shares = powers * scale + (1 << bits >> 1) >> bits
        return np.asarray(shares.clip(0, 32767)[..., slice(*out[-1])])


@dataclass(frozen=True)
class ArgMax(OfOne):
    """The index along ``axis`` of the first greatest element, or of the first ``least``; the axis
    is left out."""

    axis: int = 0
    least: bool = False

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape = tensors[self.inputs[0]].shape
        if not 0 <= self.axis < len(shape):
            raise ThimbleError(f"{self.name}: axis {self.axis} of {shape}")
        return (*shape[: self.axis], *shape[self.axis + 1 :]) or (1,)

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        shape = tensors[self.inputs[0]].shape
        windows = [Window(d - (d > self.axis)) for d in range(len(shape))]
        windows[self.axis] = Window(None, shape[self.axis])
        return tuple(windows)

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        dtype = tensors[self.inputs[0]].dtype
        x = self.given(tensors, out, regions, dtype.maximum if self.least else dtype.minimum)
        found = (np.argmin if self.least else np.argmax)(x, axis=self.axis + 1)
        return np.asarray(found.reshape(len(x), *(stop - start for start, stop in out)), np.int64)


@dataclass(frozen=True)
class Normalize(OfOne):
    """Normalize what lies along ``axes`` of an input of three, less its mean where ``centred``.

    With n elements, their sum S (0 where not centred) and their squares' sum Q, less zero points,
    the output is (n x - S) / sqrt(n Q - S^2 + ``epsilon``) times ``requant``: layer, instance,
    group and RMS normalization, of sums of integers that are exact, and rounded once.
    """

    axes: tuple[int, ...] = (2,)
    centred: bool = True
    epsilon: int = 0
    requant: FixedPoint = FixedPoint((1 << 30,), (1,))

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source = tensors[self.inputs[0]]
        if len(source.shape) != 3 or not set(self.axes) <= {0, 1, 2} or not self.axes:
            raise ThimbleError(f"{self.name}: axes {self.axes} of {source.shape}, three are needed")
        if source.dtype.bits != 8 or self.count(tensors) > MOST:
            raise ThimbleError(f"{self.name}: up to {MOST:,} elements of 8 bits are normalized")
        if not 0 <= self.epsilon < 1 << 62 or not -24 <= self.requant.shifts[0] <= 24:
            raise ThimbleError(f"{self.name}: its epsilon or its output's scale is out of range")
        return source.shape

    def count(self, tensors: Tensors) -> int:
        """Elements that are normalized together."""
        return prod(tensors[self.inputs[0]].shape[axis] for axis in self.axes)

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        shape = tensors[self.inputs[0]].shape
        return tuple(Window(None, n) if d in self.axes else Window(d) for d, n in enumerate(shape))

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        target = tensors[self.output]
        x = self.given(tensors, out, regions) - tensors[self.inputs[0]].zero_point
        over, n = tuple(axis + 1 for axis in self.axes), self.count(tensors)
        total = x.sum(over, keepdims=True) * self.centred
        spread = np.maximum(n * (x * x).sum(over, keepdims=True) - total**2 + self.epsilon, 1)
        pairs = np.array([inverse_root(int(value)) for value in spread.reshape(-1)], np.int64)
        mantissa, halvings = (pairs[:, side].reshape(spread.shape) for side in (0, 1))
        factor = mantissa * self.requant.multipliers[0] >> 31
        right = 62 - self.requant.shifts[0] - halvings
        scaled = (n * x - total) * factor + (np.int64(1) << right - 1) >> right
        stored = target.dtype.clip(scaled + target.zero_point)
        taken = (slice(*span) if d in self.axes else slice(None) for d, span in enumerate(out))
        return np.asarray(stored[:, *taken])


def inverse_root(value: int) -> tuple[int, int]:
    """1 / sqrt(value) of 1 … 2**64 - 1 as m * 2**(k - 62): (m below 2**31, k)."""
    k = (64 - value.bit_length()) // 2
    return min((1 << 62) // isqrt(value << 2 * k), (1 << 31) - 1), k


@dataclass(frozen=True)
class MatMul(Requantized):
    """(r, n, k) * (r, k, m) -> (r, n, m): TFLite's int8 BATCH_MATMUL of two activations.

    Where ``turned``, an operand's last two axes are the other way round; r of one may be 1.
    """

    reading: ClassVar[tuple[str, ...]] = ("inputs", "parameters", "operands")

    operands: tuple[str, str] = ("", "")
    turned: tuple[bool, bool] = (False, False)
    requant: FixedPoint = FixedPoint((0,), (0,))
    clip: Clip = None

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shapes = [tensors[name].shape for name in self.operands]
        if any(len(shape) != 3 for shape in shapes):
            raise ThimbleError(f"{self.name}: stacks of matrices are multiplied, not {shapes}")
        (r, n, k), (s, j, m) = (
            (shape[0], *(shape[:0:-1] if turned else shape[1:]))
            for shape, turned in zip(shapes, self.turned, strict=True)
        )
        if k != j or (r != s and min(r, s) > 1):
            raise ThimbleError(f"{self.name}: matrices {shapes} do not go together")
        return max(r, s), n, m

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        found = list[Operand]()
        for name, turned, axis in zip(self.operands, self.turned, (1, 2), strict=True):
            shape = tensors[name].shape
            inner = 1 if turned == (axis == 1) else 2
            windows = [Window(0 if shape[0] > 1 else None), Window(axis), Window(axis)]
            windows[inner] = Window(None, shape[inner])
            found.append(Operand(name, tuple(windows)))
        return (Term(tuple(found)),)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        products = np.outer(*(broadcast.extremes(name, tensors) for name in self.operands))
        count = self.atoms(tensors)
        return int(products.min()) * count, int(products.max()) * count

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        sides = list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]()
        for operand, turned in zip(self.terms(tensors)[0].operands, self.turned, strict=True):
            x = broadcast.centred(operand, tensors, out, regions)
            sides.append((x.swapaxes(-1, -2) if turned else x).astype(np.float64))
        return np.asarray(sides[0] @ sides[1], np.int64)  # exact below 2**53
