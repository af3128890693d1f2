"""Elementwise functions of ATen."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import torch

from pipeline.importers.functions import PLAIN, Composed
from pipeline.importers.layout import Value
from pipeline.importers.torch_call import Call, Table, required


def clip(call: Call) -> Value:
    """aten.hardtanh(-1, 1), aten.clamp(None, None)"""
    low, high = call.get(1, "min", call.kwargs.get("min_val")), call.get(2, "max")
    return _clip(call, low, call.kwargs.get("max_val") if high is None else high)


def hardtanh(call: Call) -> Value:
    return _clip(call, call.get(1, "min_val", -1), call.get(2, "max_val", 1))


def _clip(call: Call, low: Any, high: Any) -> Value:
    if isinstance(low, (Value, torch.Tensor)) or isinstance(high, (Value, torch.Tensor)):
        raise call.builder.refuse("clamping to a tensor is not supported")
    limits = (-inf if low is None else float(low), inf if high is None else float(high))
    return call.builder.function(call.x, Composed.of("clip", *limits))


def function(name: str, *constants: float | tuple[str, float]) -> Callable[[Call], Value]:
    """Constants are numbers, or the arguments after the input with what they are by default."""

    def made(call: Call) -> Value:
        given = [
            call.get(index, *each) if isinstance(each, tuple) else each
            for index, each in enumerate(constants, 1)
        ]
        return call.builder.function(call.x, Composed.of(name, *given))

    return made


def gelu(call: Call) -> Value:
    tanh = call.kwargs.get("approximate", "none") == "tanh"
    return call.builder.function(call.x, Composed.of("gelu_tanh" if tanh else "gelu"))


def celu(call: Call) -> Value:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))"""
    alpha = float(call.get(1, "alpha", 1.0))
    return call.builder.function(call.x, Composed.of("elu", alpha, 1.0, 1 / alpha))


def softshrink(call: Call) -> Value:
    limit = float(call.get(1, "lambd", 0.5))
    return call.builder.function(call.x, Composed.of("shrink", limit, limit))


def power(call: Call) -> Value:
    exponent = call.get(1, "exponent")
    if isinstance(exponent, (Value, torch.Tensor)):
        raise call.builder.refuse("a power with a tensor as exponent is not supported")
    return call.builder.function(call.x, Composed.of("power", float(exponent)))


def prelu(call: Call) -> Value:
    """Return one slope, or one for each channel."""
    slopes, x = required(call, 1, "weight"), call.x
    if slopes.ndim == 1 < slopes.size:
        slopes = slopes.reshape((-1,) + (1,) * (len(x.shape) - 2))
    return call.builder.slopes(x, slopes)


ALIKE = (*PLAIN, "hardswish", "silu", "mish", "expm1", "log1p", "trunc")

OPERATORS: Table = {
    **{f"aten.{name}.default": function(name) for name in ALIKE},
    "aten.relu.default": function("clip", 0.0, inf),
    "aten.relu6.default": function("clip", 0.0, 6.0),
    "aten.hardtanh.default": hardtanh,
    "aten.clamp.default": clip,
    "aten.clamp_min.default": function("clip", ("min", 0.0), inf),
    "aten.hardsigmoid.default": function("hardsigmoid", 1 / 6, 0.5),
    "aten.gelu.default": gelu,
    "aten.leaky_relu.default": function("leaky_relu", ("negative_slope", 0.01)),
    "aten.prelu.default": prelu,
    "aten._prelu_kernel.default": prelu,
    "aten.elu.default": function("elu", ("alpha", 1.0), ("scale", 1.0), ("input_scale", 1.0)),
    "aten.celu.default": celu,
    "aten.softplus.default": function("softplus", ("beta", 1.0), ("threshold", 20.0)),
    "aten.rsqrt.default": function("power", -0.5),
    "aten.pow.Tensor_Scalar": power,
    "aten.square.default": function("power", 2.0),
    "aten.threshold.default": function("threshold", ("threshold", 0.0), ("value", 0.0)),
    "aten.hardshrink.default": function("shrink", ("lambd", 0.5), 0.0),
    "aten.softshrink.default": softshrink,
    "aten.log_sigmoid.default": function("logsigmoid"),
    "aten.logical_not.default": function("equal", 0.0),
}
