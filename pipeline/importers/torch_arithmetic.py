"""Sums, differences, products and quotients of ATen, of activations and of constants.

Arguments are those of ATen's schemas
(https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/native_functions.yaml).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.importers import float_nodes as nodes
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.torch_call import Call, Table, floats


def arithmetic(call: Call, name: str) -> Value:
    """a + alpha * b, a - alpha * b, a * b, a / b: activations or constants."""
    a, b = call.get(0, "self"), call.get(1, "other")
    alpha = float(call.kwargs.get("alpha", 1))
    build = call.builder
    if isinstance(a, Value) and isinstance(b, Value):
        if name == "div":
            raise build.refuse("a division by an activation is not supported")
        if name == "mul":
            return build.binary(nodes.Product, a, b)
        factor = alpha if name == "add" else -alpha
        if factor != 1:
            function = "neg" if factor == -1 else "affine"
            constants = () if factor == -1 else (factor, 0.0)
            b = build.function(b, Composed.of(function, *constants))
        return build.binary(nodes.Sum, a, b)
    x, other, swapped = (a, floats(b), False) if isinstance(a, Value) else (b, floats(a), True)
    one, zero = np.ones(()), np.zeros(())
    if name == "add":
        return build.scale(x, one * alpha if swapped else one, other if swapped else alpha * other)
    if name == "sub":
        return build.scale(x, -one * alpha, other) if swapped else build.scale(
            x, one, -alpha * other
        )  # fmt: skip
    if name == "mul":
        return build.scale(x, other, zero)
    if swapped:
        return build.scale(build.function(x, Composed.of("reciprocal")), other, zero)
    return build.scale(x, 1 / other, zero)


def rsub(call: Call) -> Value:
    """other - self"""
    swapped = Call(call.builder, (call.args[1], call.args[0]), call.kwargs, call.shape)
    return arithmetic(swapped, "sub")


OPERATORS: Table = {
    **{
        f"aten.{name}.{of}": partial(arithmetic, name=name)
        for name in ("add", "sub", "mul", "div")
        for of in ("Tensor", "Scalar")
    },
    "aten.rsub.Scalar": rsub,
}
