"""Functions of one real number, composed: whatever they are, on int8 each is a table of 256."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from pipeline.importers.deferred import F, torch

Real: TypeAlias = "torch.Tensor"


@cache
def functions() -> Mapping[str, Callable[..., Real]]:
    """Return functions by name; their arguments are earlier results, then constants."""
    return {
        "identity": lambda x: x,
        "clip": lambda x, low, high: x.clamp(low, high),
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "hardswish": F.hardswish,
        "hardsigmoid": lambda x, slope, offset: (slope * x + offset).clamp(0, 1),
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
        "elu": lambda x, alpha, scale, rate: torch.where(
            x > 0, scale * x, scale * alpha * torch.expm1(rate * x)
        ),
        "softplus": lambda x, beta, threshold: F.softplus(x, beta, threshold),
        "mish": F.mish,
        "softsign": F.softsign,
        "exp": torch.exp,
        "expm1": torch.expm1,
        "log": torch.log,
        "log1p": torch.log1p,
        "erf": torch.erf,
        "abs": torch.abs,
        "neg": torch.neg,
        "sqrt": torch.sqrt,
        "reciprocal": torch.reciprocal,
        "floor": torch.floor,
        "ceil": torch.ceil,
        "round": torch.round,
        "trunc": torch.trunc,
        "sign": torch.sign,
        "sin": torch.sin,
        "cos": torch.cos,
        "logsigmoid": F.logsigmoid,
        "swish": lambda x, rate: x * torch.sigmoid(rate * x),
        "threshold": lambda x, limit, value: F.threshold(x, limit, value),
        "shrink": lambda x, limit, bias: torch.where(
            x < -limit, x + bias, torch.where(x > limit, x - bias, 0 * x)
        ),
        "less": lambda x, y: (x < y).to(x.dtype),
        "less_equal": lambda x, y: (x <= y).to(x.dtype),
        "greater": lambda x, y: (x > y).to(x.dtype),
        "greater_equal": lambda x, y: (x >= y).to(x.dtype),
        "equal": lambda x, y: (x == y).to(x.dtype),
        "not_equal": lambda x, y: (x != y).to(x.dtype),
        "power": lambda x, exponent: x**exponent,
        "affine": lambda x, factor, offset: factor * x + offset,
        "add": lambda x, y: x + y,
        "multiply": lambda x, y: x * y,
        "divide": lambda x, y: x / y,
        "maximum": torch.maximum,
        "minimum": torch.minimum,
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
