"""Quantization to a power-of-two grid with a trainable threshold.

Source: Jain et al., "Trained Quantization Thresholds" (TQT, 2019), eqs. 4-8. With threshold
t = 2**log2_t rounded up to a power of two, b bits give the scale s = 2**ceil(log2_t) / 2**(b - 1)
(signed) or / 2**b (unsigned) and x becomes s * clip(round(x / s), n, p). Every scale is a power
of two, so that in float32 all of this is exact below 2**24 units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pipeline.graph.tensor import DType


@dataclass(frozen=True)
class Format:
    """An integer type seen as a grid of fractions of a threshold."""

    dtype: DType

    @property
    def fraction_bits(self) -> int:
        return self.dtype.bits - self.dtype.signed

    def exponent(self, log2_t: Tensor) -> Tensor:
        """log2 of the grid's step for a threshold; the ceiling's gradient is taken as 1."""
        return log2_t + (torch.ceil(log2_t) - log2_t).detach() - self.fraction_bits

    def quantize(self, x: Tensor, exponent: Tensor) -> Tensor:
        """``x`` on the grid of step 2**exponent, of the same shape."""
        low, high = self.dtype.minimum, self.dtype.maximum
        result: Tensor = _Quantize.apply(x, exponent, low, high)  # type: ignore[no-untyped-call]
        return result

    def integers(self, x: Tensor, exponent: int) -> Tensor:
        """Return the stored integers, as int64."""
        low, high = self.dtype.minimum, self.dtype.maximum
        return torch.round(x.detach() * 2.0**-exponent).clamp(low, high).to(torch.int64)

    def best_log2(self, x: Tensor) -> float:
        """Return the threshold whose grid has the least squared error on ``x``, half a bin below
        its power of two so that training may move it either way."""
        peak = float(x.detach().abs().max())
        top = math.ceil(math.log2(peak)) if peak > 0 else 0
        errors = {}
        for power in range(top, top - 8, -1):
            exponent = torch.tensor(float(power - self.fraction_bits))
            errors[power] = float((self.quantize(x.detach(), exponent) - x.detach()).square().sum())
        return min(errors, key=lambda power: errors[power]) - 0.5


class _Quantize(torch.autograd.Function):
    """Forward: clip and round half to even. Backward: TQT eqs. 6-8.

    dL/dx passes where x is not clipped. dy/dlog2_t = ln 2 * (y - x) there, ln 2 * y elsewhere.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, exponent: Tensor, low: int, high: int) -> Tensor:
        scale = 2.0 ** round(float(exponent))
        steps = torch.round(x * (1 / scale))
        inside = (steps >= low) & (steps <= high)
        y = steps.clamp_(low, high).mul_(scale)
        ctx.save_for_backward(inside, *((x, y) if ctx.needs_input_grad[1] else ()))
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inside, *values = ctx.saved_tensors
        to_x = gradients[0] * inside
        if not values:
            return to_x, None, None, None
        x, y = values
        to_log2 = math.log(2) * (torch.sum(gradients[0] * y) - torch.sum(to_x * x))
        return to_x, to_log2, None, None
