"""C that brings a complete sum back to a narrow integer, with all constants folded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.constants import Constants, narrowest
from pipeline.errors import ThimbleError
from pipeline.graph.requant import INT32, FixedPoint, PowerOfTwo, Requant, overflow
from pipeline.graph.tensor import IntArray


@dataclass(frozen=True)
class Scaling:
    """``sum`` to what is stored less the zero point; the text has places for sum and channel.

    Attributes:
        text: a C expression; ``{sum}`` and ``{channel}`` are to be filled in.
        per_channel: whether it depends on the channel.
    """

    text: str
    per_channel: bool

    def __call__(self, total: str, channel: str) -> str:
        return self.text.format(sum=total, channel=channel)


def scaling(
    constants: Constants,
    op: str,
    requant: Requant,
    sums: tuple[int, int],
    bias: IntArray | None = None,
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


def stored(
    value: str, limits: tuple[int, int], zero_point: int, reached: tuple[int, int] = INT32
) -> str:
    """``value``, which may be what is ``reached``, between the limits of what is stored, then the
    zero point."""
    low, high = (limit - zero_point for limit in limits)
    text, below, above = f"({value})", reached[0] < low, reached[1] > high
    if below and above:
        text = f"nn_clip({value}, {low}, {high})"
    elif below or above:
        text = f"nn_max({value}, {low})" if below else f"nn_min({value}, {high})"
    return f"{text} + {zero_point}".replace("+ -", "- ") if zero_point else text
