"""Sums that begin with their bias, where that is known when code is generated.

``((sum << left) + bias) / 2**right``, halves rounded to even, is a shift of the sum alone, by
``right - left``, if it begins with ``bias >> left``: the bits of the bias below that only tell
whether a half can be left over. Where none can, half of what the shift drops is in the start, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.codegen.int4.kernel import WindowKernel


@dataclass(frozen=True)
class Start:
    """
    Attributes:
        ties: a half may be left over: it is rounded to even at the end.
    """

    value: int
    ties: bool

    @classmethod
    def of(cls, bias: int, left_shift: int, shift: int) -> Start:
        """``shift``: to the right, what is left of it; at least 1."""
        value, rest = bias >> left_shift, bias % (1 << left_shift)
        return cls(value, True) if not rest else cls(value + (1 << (shift - 1)), False)


def starts(kernel: WindowKernel) -> tuple[Start, ...]:
    """Return each lane's start; none where a sum is not shifted to the right."""
    spec, requant = kernel.window, kernel.window.requant
    shift = requant.right_shift - requant.left_shift
    if spec.bias is None or shift < 1:
        return ()
    zero = spec.target.zero_point << requant.right_shift
    biases = (int(spec.bias[channel]) + zero for channel in kernel.lanes.channels)
    return tuple(Start.of(bias, requant.left_shift, shift) for bias in biases)
