"""Ends of an operator's sums in C, all constants folded: requantization, the fused activation and
the zero point."""

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.constants import Constants, narrowest
from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.graph.families import Pairwise, Weighted
from pipeline.graph.operator import Operator, limits
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import (
    INT32,
    FixedPoint,
    Mean,
    PowerOfTwo,
    Requant,
    UnsignedMean,
    overflow,
)
from pipeline.graph.tensor import IntArray

Range = tuple[int, int]


@dataclass(frozen=True)
class Scaling:
    """``sum`` to what is stored less the zero point; the text has places for sum and channel.

    Attributes:
        text: a C expression; ``{sum}`` and ``{channel}`` are to be filled in.
        per_channel: whether it depends on the channel.
    """

    text: str
    per_channel: bool

    def scaled(self, total: str, channel: str = "0") -> str:
        return self.text.format(sum=total, channel=channel)


def scaling(
    constants: Constants, op: str, requant: Requant, sums: Range, bias: IntArray | None = None
) -> Scaling:
    """
    Args:
        sums: the least and greatest sum.
        bias: (channels,), added in the requantization's own way.

    Raises:
        ThimbleError: when a sum does not fit the 32 bits that the arithmetic is defined for.
    """
    if why := overflow(requant, sums, bias):
        raise ThimbleError(f"{op}: {why}")
    biases = np.zeros(1, np.int64) if bias is None else np.asarray(bias, dtype=np.int64)
    left = requant.left_shift if isinstance(requant, PowerOfTwo) else 0
    shifted = "{sum}" if not left else f"({{sum}}) * {1 << left}"
    value, per_channel = shifted, False
    if biases.any():
        if len(set(biases.tolist())) == 1:
            value = f"{shifted} + {int(biases[0])}".replace("+ -", "- ")
        else:
            table = constants.add(op, "bias", narrowest(biases), biases, f"{op}: bias")
            value, per_channel = f"{shifted} + {table.read('{channel}')}", True
    if isinstance(requant, PowerOfTwo):
        return Scaling(_shifted(value, requant), per_channel)
    text, tables = _fixed_point(constants, op, value, requant)
    return Scaling(text, per_channel or tables)


def _shifted(value: str, requant: PowerOfTwo) -> str:
    if requant.right_shift == 0:
        return value
    if requant.rounding == "floor":  # of whatever type it is
        return f"({value}) >> {requant.right_shift}"
    return f"nn_half_even({value}, {requant.right_shift})"


def _fixed_point(
    constants: Constants, op: str, value: str, requant: FixedPoint
) -> tuple[str, bool]:
    multipliers = np.array(requant.multipliers, dtype=np.int64)
    shifts = np.array(requant.shifts, dtype=np.int64)
    rightwards = int(shifts.max()) <= 0
    name, exponents = ("nn_scaled", -shifts) if rightwards else ("nn_scaled_up", shifts)
    parts = [
        _entry(constants, op, "multiplier", multipliers),
        _entry(constants, op, "shift", exponents),
    ]
    return f"{name}({value}, {parts[0]}, {parts[1]})", any("{" in part for part in parts)


def _entry(constants: Constants, op: str, kind: str, values: IntArray) -> str:
    if len(set(values.tolist())) == 1:
        return str(int(values[0]))
    table = constants.add(op, kind, narrowest(values), values, f"{op}: {kind} of each channel")
    return table.read("{channel}")


def stored(value: str, limits: Range, zero_point: int, reached: Range = INT32) -> str:
    """``value``, which may be what is ``reached``, between the limits of what is stored, then the
    zero point."""
    low, high = (limit - zero_point for limit in limits)
    text, below, above = f"({value})", reached[0] < low, reached[1] > high
    if below and above:
        text = f"nn_clip({value}, {low}, {high})"
    elif below or above:
        text = f"nn_max({value}, {low})" if below else f"nn_min({value}, {high})"
    return f"{text} + {zero_point}".replace("+ -", "- ") if zero_point else text


@dataclass(frozen=True)
class Ending(Scaling):
    """A complete sum as its tensor stores it.

    Attributes:
        limits: stored integers let through; ``zero_point``: added last.
        counted: the sum is of stored integers and is divided by how many they are.
        reached: the least and greatest that ``scaled`` gives, as far as that is known.
    """

    limits: Range
    zero_point: int = 0
    counted: bool = False
    reached: Range = INT32

    def stored(self, value: str) -> str:
        """Return C that stores what ``scaled`` gave, as the tensor has it."""
        return stored(value, self.limits, self.zero_point, self.reached)


def ending(program: Program, op: Operator, held: Range = (0, 0)) -> Ending:
    """
    Args:
        held: the least and greatest sum that accumulators may stand for, where they are rounded.

    Raises:
        ThimbleError: for operators without sums: nothing of theirs is ever incomplete.
    """
    exact = op.partial_sums(program.graph.tensors, program.graph.constants)
    sums = min(exact[0], held[0]), max(exact[1], held[1])
    target, bias, reached = program.graph.tensors[op.output], None, INT32
    match op:
        case Weighted(requant=requant):
            bias = program.graph.constants[op.parameters[1]]
        case AveragePool2d(requant=Mean()):
            text = "nn_mean({sum}, count)"
            if isinstance(op.requant, UnsignedMean):
                offset = op.requant.OFFSET
                text = f"nn_mean({{sum}} + {offset} * count, count) - {offset}"
            return Ending(text, False, limits(target, op.clip), counted=True)
        case MaxPool2d():
            ends = program.graph.tensors[op.inputs[0]].dtype
            reached = ends.minimum, ends.maximum
            return Ending("{sum}", False, limits(target, op.clip), reached=reached)
        case AveragePool2d(requant=FixedPoint() | PowerOfTwo() as requant):
            least, most = map(int, requant.apply(np.array(sums)))
            reached = least, most
        case Pairwise(requant=requant):
            pass
        case _:
            raise ThimbleError(f"{op.name}: {type(op).__name__} has no partial results")
    found = scaling(program.constants, op.name, requant, sums, bias)
    ends_at = limits(target, op.clip), target.zero_point
    return Ending(found.text, found.per_channel, *ends_at, reached=reached)
