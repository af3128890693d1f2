"""Elementwise functions of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Table, scalar

SELU = (1.67326319217681884765625, 1.05070102214813232421875)


def function(name: str, *constants: float) -> Callable[[Call], Value]:
    def made(call: Call) -> Value:
        return call.builder.function(call.x, Composed.of(name, *constants))

    return made


def parametric(name: str, *defaults: tuple[str, float]) -> Callable[[Call], Value]:
    """A function whose attributes are its constants."""

    def made(call: Call) -> Value:
        given = [call.number(key, value) for key, value in defaults]
        return call.builder.function(call.x, Composed.of(name, *given))

    return made


def clip(call: Call) -> Value:
    """Limits are attributes in old opsets, inputs in new ones."""
    low = call.number("min", scalar(call, 1, -inf))
    high = call.number("max", scalar(call, 2, inf))
    return call.builder.function(call.x, Composed.of("clip", low, high))


def elu(call: Call) -> Value:
    constants = (call.number("alpha", 1.0), 1.0, 1.0)
    return call.builder.function(call.x, Composed.of("elu", *constants))


def selu(call: Call) -> Value:
    alpha, gamma = call.number("alpha", SELU[0]), call.number("gamma", SELU[1])
    return call.builder.function(call.x, Composed.of("elu", alpha, gamma, 1.0))


def gelu(call: Call) -> Value:
    tanh = call.text("approximate", "none") == "tanh"
    return call.builder.function(call.x, Composed.of("gelu_tanh" if tanh else "gelu"))


def power(call: Call) -> Value:
    return call.builder.function(call.x, Composed.of("power", scalar(call, 1, 1.0)))


def prelu(call: Call) -> Value:
    """One slope; or some that broadcast, such as one for each channel."""
    slopes = call.constant(1).floats
    if slopes.size and np.ptp(slopes) == 0:
        slope = float(slopes.reshape(-1)[0])
        return call.builder.function(call.x, Composed.of("leaky_relu", slope))
    return call.builder.slopes(call.x, slopes)


OPERATORS: Table = {
    "Relu": function("clip", 0.0, inf),
    "Clip": clip,
    "Sigmoid": function("sigmoid"),
    "Tanh": function("tanh"),
    "HardSwish": function("hardswish"),
    "HardSigmoid": parametric("hardsigmoid", ("alpha", 0.2), ("beta", 0.5)),
    "LeakyRelu": parametric("leaky_relu", ("alpha", 0.01)),
    "PRelu": prelu,
    "Elu": elu,
    "Selu": selu,
    "Gelu": gelu,
    "Mish": function("mish"),
    "Softplus": function("softplus", 1.0, 20.0),
    "Softsign": function("softsign"),
    "Exp": function("exp"),
    "Log": function("log"),
    "Erf": function("erf"),
    "Abs": function("abs"),
    "Neg": function("neg"),
    "Sqrt": function("sqrt"),
    "Reciprocal": function("reciprocal"),
    "Floor": function("floor"),
    "Round": function("round"),
    "Pow": power,
}
