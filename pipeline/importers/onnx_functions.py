"""Elementwise functions of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from pipeline.importers.functions import PLAIN, Composed
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Table, scalar

SELU = (1.67326319217681884765625, 1.05070102214813232421875)


def function(name: str, *constants: float | tuple[str, float]) -> Callable[[Call], Value]:
    """Constants are numbers, or attributes with what they are by default."""

    def made(call: Call) -> Value:
        given = [call.number(*each) if isinstance(each, tuple) else each for each in constants]
        return call.builder.function(call.x, Composed.of(name, *given))

    return made


def clip(call: Call) -> Value:
    """Limits are attributes in old opsets, inputs in new ones."""
    low = call.number("min", scalar(call, 1, -inf))
    high = call.number("max", scalar(call, 2, inf))
    return call.builder.function(call.x, Composed.of("clip", low, high))


def gelu(call: Call) -> Value:
    tanh = call.text("approximate", "none") == "tanh"
    return call.builder.function(call.x, Composed.of("gelu_tanh" if tanh else "gelu"))


def celu(call: Call) -> Value:
    alpha = call.number("alpha", 1.0)
    return call.builder.function(call.x, Composed.of("elu", alpha, 1.0, 1 / alpha))


OPERATORS: Table = {
    **{name.capitalize(): function(name) for name in PLAIN},
    "Relu": function("clip", 0.0, inf),
    "Clip": clip,
    "HardSwish": function("hardswish"),
    "HardSigmoid": function("hardsigmoid", ("alpha", 0.2), ("beta", 0.5)),
    "LeakyRelu": function("leaky_relu", ("alpha", 0.01)),
    "PRelu": lambda call: call.builder.slopes(call.x, call.constant(1).floats),
    "Elu": function("elu", ("alpha", 1.0), 1.0, 1.0),
    "Selu": function("elu", ("alpha", SELU[0]), ("gamma", SELU[1]), 1.0),
    "Gelu": gelu,
    "Mish": function("mish"),
    "Softplus": function("softplus", 1.0, 20.0),
    "Softsign": function("softsign"),
    "Not": function("equal", 0.0),
    "ThresholdedRelu": function("threshold", ("alpha", 1.0), 0.0),
    "Shrink": function("shrink", ("lambd", 0.5), ("bias", 0.0)),
    "Celu": celu,
    "Swish": function("swish", ("alpha", 1.0)),
    "QuickGelu": function("swish", ("alpha", 1.702)),
}
