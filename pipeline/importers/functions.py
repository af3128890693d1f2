"""Functions of one real number, composed: whatever they are, on int8 each is a table of 256."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from pipeline.importers.deferred import F, torch

Real: TypeAlias = "torch.Tensor"


PLAIN = (
    *("sigmoid", "tanh", "exp", "log", "erf", "abs", "neg", "sqrt", "reciprocal", "floor", "ceil"),
    *("round", "sign", "sin", "cos"),
)
"""Functions without constants that PyTorch and ONNX call alike."""


@cache
def functions() -> Mapping[str, Callable[..., Real]]:
    """Return functions by name; their arguments are earlier results, then constants."""
    own = (*PLAIN, "expm1", "log1p", "trunc", "add", "multiply", "divide", "maximum", "minimum")
    of_layers = ("hardswish", "silu", "gelu", "mish", "softsign", "logsigmoid", "leaky_relu",
                 "softplus", "threshold")  # fmt: skip
    return {
        **{name: getattr(torch, name) for name in own},
        **{name: getattr(F, name) for name in of_layers},
        "identity": lambda x: x,
        "clip": lambda x, low, high: x.clamp(low, high),
        "hardsigmoid": lambda x, slope, offset: (slope * x + offset).clamp(0, 1),
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "elu": lambda x, alpha, scale, rate: torch.where(
            x > 0, scale * x, scale * alpha * torch.expm1(rate * x)
        ),
        "swish": lambda x, rate: x * torch.sigmoid(rate * x),
        "shrink": lambda x, limit, bias: torch.where(
            x < -limit, x + bias, torch.where(x > limit, x - bias, 0 * x)
        ),
        "order": lambda x, y: torch.sign(x - y),
        "less": lambda x, y: (x < y).to(x.dtype),
        "less_equal": lambda x, y: (x <= y).to(x.dtype),
        "greater": lambda x, y: (x > y).to(x.dtype),
        "greater_equal": lambda x, y: (x >= y).to(x.dtype),
        "equal": lambda x, y: (x == y).to(x.dtype),
        "not_equal": lambda x, y: (x != y).to(x.dtype),
        "power": lambda x, exponent: x**exponent,
        "affine": lambda x, factor, offset: factor * x + offset,
    }


@dataclass(frozen=True)
class Step:
    """``functions()[function](*results[arguments], *constants)``; result 0 is the input."""

    function: str
    arguments: tuple[int, ...] = (0,)
    constants: tuple[float, ...] = ()


@dataclass(frozen=True)
class Composed:
    """Steps one after the other; the last one's result is the function's."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, function: str, *constants: float) -> Composed:
        return cls((Step(function, (0,), tuple(float(value) for value in constants)),))

    def __call__(self, x: Real) -> Real:
        results = [x]
        for step in self.steps:
            arguments = [results[index] for index in step.arguments]
            results.append(functions()[step.function](*arguments, *step.constants))
        return results[-1]

    def after(self, inner: Composed) -> Composed:
        """``self(inner(x))``."""
        return Composed(inner.steps + self._moved(len(inner.steps), len(inner.steps)))

    def beside(self, other: Composed, function: str) -> Composed:
        """``function(self(x), other(x))``."""
        count, more = len(self.steps), len(other.steps)
        meet = Step(function, (count, count + more))
        return Composed(self.steps + other._moved(count, 0) + (meet,))

    def _moved(self, by: int, origin: int) -> tuple[Step, ...]:
        """The steps when ``by`` others precede them, and result ``origin`` is their input."""
        return tuple(
            Step(
                step.function,
                tuple(index + by if index else origin for index in step.arguments),
                step.constants,
            )
            for step in self.steps
        )
