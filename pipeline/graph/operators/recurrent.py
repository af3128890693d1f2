"""Cells along a sequence, whose steps read what the step before made: LSTM, GRU, and what is SVDF's
own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.exponential import sigmoid_points
from pipeline.graph.families import OfOne
from pipeline.graph.operator import Constants, Operator, Regions, Tensors, product_sums, windowed
from pipeline.graph.requant import FixedPoint, overflow
from pipeline.graph.tensor import Box, DType, IntArray, Tensor

ONCE = FixedPoint((0,), (0,))
WIDE = DType.parse("int16")
Arrays = list[IntArray]


@dataclass(frozen=True)
class Recurrent(Operator):
    """(1, steps, features) -> (1, steps, units), step by step, from the last one on if ``reverse``.

    ``parameters``: weights (gates * units, features), those of what the step before made, h, (gates
    * units, units), and biases. A gate's sums of x and of h are brought to int16 in steps of 2**-12
    by ``requants``, a multiplier for each gate, then added up; its sigmoid or tanh is in Q0.15
    (TFLite's 16-bit arithmetic, see ``sigmoid`` and ``tanh``). Of one step what the call before
    made are inputs, too; else all begins with 0.
    """

    gates: ClassVar[int]
    states: ClassVar[int]
    """Inputs that the call before made."""

    requants: tuple[FixedPoint, FixedPoint] = (ONCE, ONCE)
    reverse: bool = False

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shapes = [tensors[name].shape for name in (*self.inputs, *self.parameters)]
        (steps, features), rows = shapes[0][1:], shapes[len(self.inputs)][0]
        units = rows // self.gates
        given = len(self.inputs) - 1
        wanted = [(1, steps, features), *[(1, 1, units)] * given, (units * self.gates, features)]
        wanted += [(rows, units), (rows,), (units,)][: len(self.parameters) - 1]
        multipliers = [len(each.multipliers) for each in self.requants]
        if multipliers != [self.gates] * 2:
            raise ThimbleError(f"{self.name}: {multipliers} multipliers of {self.gates} gates")
        if shapes != wanted or given not in (0, self.states) or (given and steps > 1):
            raise ThimbleError(
                f"{self.name}: a sequence {shapes[0]}, or one step with {self.states} states, does "
                f"not go with weights of {[list(each) for each in shapes[1:]]}"
            )
        return 1, steps, units

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        """All that is read is a term by itself: each step depends on those before it."""
        names = (*self.inputs, *self.parameters)
        every = [(n, tuple(Window(None, d) for d in tensors[n].shape)) for n in names]
        return tuple(Term((Operand(name, windows),)) for name, windows in every)

    def in_place(self, tensors: Tensors) -> dict[str, int]:
        """Return where what is kept takes the place of what was."""
        return dict.fromkeys((n for n in self.same_sized(tensors) if n in self.inputs[1:]), 0)

    def macs(self, tensors: Tensors) -> int:
        weights = sum(tensors[name].size for name in self.parameters[:2])
        return weights * tensors[self.inputs[0]].shape[1]

    def hidden(self, tensors: Tensors) -> Tensor:
        """Return what gates read of the step before."""
        return tensors[(*self.inputs, self.output)[1]]

    def sums(self, tensors: Tensors, constants: Constants) -> tuple[tuple[int, int], ...]:
        """Return the least and the greatest sum of x, and of h, biases included."""
        found, sources = [], (tensors[self.inputs[0]], self.hidden(tensors))
        for source, weights, bias in zip(
            sources, self.parameters, (*self.parameters[2:], "")[:2], strict=False
        ):
            ends = product_sums(constants[weights], source)
            more = np.array([0, *constants.get(bias, ())])
            found.append((int(ends.min() + more.min()), int(ends.max() + more.max())))
        return tuple(found)

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        pairs = zip(self.requants, self.sums(tensors, constants), strict=True)
        return next(filter(None, (overflow(*pair) for pair in pairs)), "")

    def gated(
        self, values: IntArray, weights: IntArray, bias: IntArray | int, requant: FixedPoint
    ) -> IntArray:
        """(n, depth) -> (gates, n, units), in steps of 2**-12.

        Products are added up in float64, which is exact below 2**53.
        """
        total = (values.astype(np.float64) @ weights.T.astype(np.float64)).astype(np.int64) + bias
        parts = total.reshape(len(values), len(requant.multipliers), -1).swapaxes(1, 2)
        return to_16(requant.apply(parts)).transpose(2, 0, 1)

    def joined(self, x: IntArray, h: IntArray, *parameters: IntArray) -> IntArray:
        """Add up what x and h give: (gates, n, units)."""
        weights, back, bias = parameters
        own = self.gated(x, weights, bias, self.requants[0])
        return to_16(own + self.gated(h, back, 0, self.requants[1]))

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        values, target = Arrays(), tensors[self.output]
        for name in (*self.inputs, *self.parameters):
            zero = tensors[name].zero_point
            values.append(windowed(regions[name], tensors[name].box, zero) - zero)
        given, (_, steps, units) = len(self.inputs), target.shape
        x, *states = (each[:, 0] for each in values[:given])
        parameters = [each[0] for each in values[given:]]
        kept = [each[:, 0] for each in states] or [np.zeros((len(x), units), np.int64)] * 2
        made = np.zeros((len(x), 1, steps, units), np.int64)
        for at in reversed(range(steps)) if self.reverse else range(steps):
            kept = self.step(x[:, at], kept, parameters, target)
            made[:, 0, at] = kept[0] + target.zero_point
        return made[:, *(slice(*span) for span in out)]

    @abstractmethod
    def step(self, x: IntArray, kept: Arrays, parameters: Arrays, target: Tensor) -> Arrays:
        """Compute what is kept of a step, what it makes first; all less zero points."""

    def kept(self, tensors: Tensors) -> bool:
        """Check whether it keeps something of a step besides what it makes."""
        return len(self.inputs) == 1

    def scratch_bytes(self, tensors: Tensors) -> int:
        """Count, of 16 bits each, a step's x and h, what is kept besides, and r h, in fours."""
        counts = (tensors[name].shape[2] for name in (self.inputs[0], self.output))
        features, units = (-(-count // 4) * 4 for count in counts)
        more = 1 + self.kept(tensors) + (not getattr(self, "after", True))
        return 2 * (features + more * units)


class LstmStep(Recurrent):
    """(x, h, c) -> what its gates make of them: c', h' or both."""

    states: ClassVar[int] = 2

    def step(self, x: IntArray, kept: Arrays, parameters: Arrays, target: Tensor) -> Arrays:
        gates = self.joined(x, kept[0], *parameters)
        c = self.remembered(gates, kept[1])
        return [*self.shown(gates, c, target), c]

    @abstractmethod
    def remembered(self, gates: IntArray, c: IntArray) -> IntArray:
        """c'"""

    def shown(self, gates: IntArray, c: IntArray, target: Tensor) -> Arrays:
        """h', where that is made."""
        return []


@dataclass(frozen=True)
class LstmMemory(LstmStep):
    """(x, h, c) -> c', of the gates i, f and g: f c + i g, each product requantized to c's int16 by
    ``keep`` and ``add``; ``most``: the greatest that is remembered, if not 0."""

    gates: ClassVar[int] = 3

    keep: FixedPoint = ONCE
    add: FixedPoint = ONCE
    most: int = 0

    def remembered(self, gates: IntArray, c: IntArray) -> IntArray:
        i, f, g = sigmoid(gates[0]), sigmoid(gates[1]), tanh(3 * gates[2])
        total = to_16(to_16(self.keep.apply(f * c)) + to_16(self.add.apply(i * g)))
        return total.clip(-self.most, self.most) if self.most else total


@dataclass(frozen=True)
class LstmHidden(LstmStep):
    """(x, h, c') -> h', of the gate o, the last: o tanh(c'), requantized by ``show``. tanh takes c'
    times the first of ``curve``, over 2 to the second, as steps of 1/12288."""

    gates: ClassVar[int] = 1

    show: FixedPoint = ONCE
    curve: tuple[int, int] = (3, 0)

    def remembered(self, gates: IntArray, c: IntArray) -> IntArray:
        return c

    def shown(self, gates: IntArray, c: IntArray, target: Tensor) -> Arrays:
        factor, shift = self.curve
        seen = tanh(c * factor + (1 << shift >> 1) >> shift)
        value = self.show.apply(sigmoid(gates[-1]) * seen)
        return [target.dtype.clip(value + target.zero_point) - target.zero_point]


@dataclass(frozen=True)
class Lstm(LstmMemory, LstmHidden):
    """A sequence: gates i, f, g and o, h as the output has it."""

    gates: ClassVar[int] = 4
    states: ClassVar[int] = 0


@dataclass(frozen=True)
class Gru(Recurrent):
    """A sequence, or (x, h) -> h': n + z (h - n), of the gates z, r and n, with h in Q0.15.

    n is tanh(W x + b + r (R h + b')) where r comes ``after`` the product, else of R (r h); b' is
    the last of ``parameters``. An output of 8 bits has h in steps of 1/128.
    """

    gates: ClassVar[int] = 3
    states: ClassVar[int] = 1

    after: bool = True

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        for name in (*self.inputs[1:], self.output):
            made = tensors.get(name)
            if made and (made.zero_point or made.scale != (2.0 ** (1 - made.dtype.bits),)):
                raise ThimbleError(f"{self.name}: {name} has to be in steps of 1/128 or 1/32768")
        return super().infer(tensors)

    def hidden(self, tensors: Tensors) -> Tensor:
        return replace(super().hidden(tensors), dtype=WIDE)

    def kept(self, tensors: Tensors) -> bool:
        return tensors[self.output].dtype.bits == 8

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        made, bits = super().accumulate(tensors, out, regions), 16 - tensors[self.output].dtype.bits
        return (made + (1 << bits >> 1) >> bits).clip(max=(1 << 15 - bits) - 1)

    def step(self, x: IntArray, kept: Arrays, parameters: Arrays, target: Tensor) -> Arrays:
        weights, back, bias, more = parameters
        h, alone = kept[0], self.requants[1].part(2, 3)
        later = np.concatenate([np.zeros(2 * len(more), np.int64), more])
        own = self.gated(x, weights, bias, self.requants[0])
        was = self.gated(h, back, later, self.requants[1])
        z, r = (sigmoid(to_16(own[gate] + was[gate])) for gate in (0, 1))
        if self.after:
            last = rounded(r * was[2])
        else:
            last = self.gated(rounded(r * h), back[2 * len(more) :], more, alone)[0]
        new = tanh(3 * to_16(own[2] + last))
        return [new + rounded(z * (h - new))]


def to_16(values: IntArray) -> IntArray:
    return values.clip(WIDE.minimum, WIDE.maximum)


def rounded(values: IntArray) -> IntArray:
    """Divide by 2**15, halves up."""
    return values + (1 << 14) >> 15


def sigmoid(q: IntArray) -> IntArray:
    """TFLite's LOGISTIC of int16 in steps of 2**-12, in Q0.15."""
    line = _line(3 * abs(q), 9)
    return np.asarray(np.where(q < 0, (1 << 25) - line + 511, line + 512) >> 10)


def tanh(u: IntArray) -> IntArray:
    """TFLite's TANH of int16 in steps of 1/12288, in Q0.15."""
    size = abs(u)
    line = np.where(size >> 8 >= 255, 65535 << 8, _line(size.clip(max=(255 << 8) - 1), 8))
    return np.asarray(np.where(u < 0, (1 << 23) - line + 127, line - (1 << 23) + 128) >> 8)


def _line(u: IntArray, bits: int) -> IntArray:
    """Sigmoid times 2**(16 + bits), on the line between two points, 2**bits apart."""
    points = np.array(sigmoid_points(), np.int64)
    low = points[u >> bits]
    return np.asarray((low << bits) + (points[(u >> bits) + 1] - low) * (u & (1 << bits) - 1))


@dataclass(frozen=True)
class TimeFilter(OfOne):
    """(memory, 1, filters) -> (units,): the rest of TFLite's SVDF. Each filter weighs what it gave
    in the last ``memory`` steps, and as many as a unit has are added up, in 32 bits that wrap
    around. ``parameters``: weights (filters, memory) of 8 or 16 bits, and biases."""

    requant: FixedPoint = ONCE

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape, weights, bias = (tensors[n].shape for n in (*self.inputs, *self.parameters))
        if shape[::2] != weights[::-1] or shape[1] != 1 or weights[0] % bias[0]:
            raise ThimbleError(f"{self.name}: weights {weights} and biases {bias} of {shape}")
        return bias

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        memory, _, filters = tensors[self.inputs[0]].shape
        rank = filters // tensors[self.parameters[1]].size
        return Window(None, memory), Window(None), Window(0, rank, rank)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        *_, memory = tensors[self.parameters[0]].shape
        rows = Operand(self.parameters[0], (self.windows(tensors)[2], Window(None, memory)))
        return *super().terms(tensors), Term((rows,))

    def completion(self, tensors: Tensors) -> tuple[Operand, ...]:
        return (Operand(self.parameters[1], (Window(0),)),)

    def macs(self, tensors: Tensors) -> int:
        return tensors[self.inputs[0]].size

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        x = self.given(tensors, out, regions)[:, :, 0] - tensors[self.inputs[0]].zero_point
        rows = self.terms(tensors)[1].operands[0]
        weights = windowed(regions[rows.tensor], rows.region(out), 0)[0]
        start, stop = out[0]
        each = (x * weights.T).sum(1).reshape(len(x), stop - start, -1)
        return np.asarray(each.sum(-1), np.int64)

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        total = acc + windowed(regions[self.parameters[1]], out, 0)[0]
        wrapped, target = (total + (1 << 31)) % (1 << 32) - (1 << 31), tensors[self.output]
        return target.dtype.clip(self.requant.apply(wrapped) + target.zero_point)
