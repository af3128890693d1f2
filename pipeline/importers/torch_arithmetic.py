"""Sums, differences, products and quotients of ATen, of activations and of constants."""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.importers.arithmetic import arithmetic, chosen, compared, extreme
from pipeline.importers.float_nodes import Floats
from pipeline.importers.layout import Value
from pipeline.importers.torch_call import Call, Table, floats


def combined(call: Call, name: str) -> Value:
    pair = call.get(0, "self"), call.get(1, "other")
    a, b = (each if isinstance(each, Value) else floats(each) for each in pair)
    return arithmetic(call.builder, name, a, b, float(call.kwargs.get("alpha", 1)))


def rsub(call: Call) -> Value:
    """other - self"""
    swapped = Call(call.builder, (call.args[1], call.args[0]), call.kwargs, call.shape)
    return combined(swapped, "sub")


def reals(call: Call) -> list[Value | Floats]:
    return [each if isinstance(each, Value) else floats(each) for each in call.args]


def extremes(call: Call, greatest: bool) -> Value:
    first, second = reals(call)
    return extreme(call.builder, greatest, first, second)


def comparison(call: Call, name: str) -> Value:
    first, second = reals(call)
    return compared(call.builder, name, first, second)


def where(call: Call) -> Value:
    condition, a, b = reals(call)
    return chosen(call.builder, condition, a, b)


def both(call: Call) -> Value:
    """aten.logical_and: of any numbers."""
    a, b = (compared(call.builder, "not_equal", each, np.zeros(1)) for each in reals(call))
    return arithmetic(call.builder, "mul", a, b)


def filled(call: Call) -> Value:
    """aten.masked_fill(x, mask, number)"""
    x, mask, number = reals(call)
    return chosen(call.builder, mask, number, x)


COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip

OPERATORS: Table = {
    **{
        f"aten.{name}.{of}": partial(combined, name=name)
        for name in ("add", "sub", "mul", "div")
        for of in ("Tensor", "Scalar")
    },
    "aten.rsub.Scalar": rsub,
    "aten.maximum.default": partial(extremes, greatest=True),
    "aten.minimum.default": partial(extremes, greatest=False),
    "aten.max.other": partial(extremes, greatest=True),
    "aten.min.other": partial(extremes, greatest=False),
    **{
        f"aten.{name}.{of}": partial(comparison, name=meaning)
        for name, meaning in COMPARISONS.items()
        for of in ("Tensor", "Scalar")
    },
    "aten.logical_and.default": both,
    "aten.__and__.Tensor": partial(combined, name="mul"),
    "aten.where.self": where,
    "aten.where.ScalarOther": where,
    "aten.masked_fill.Scalar": filled,
}
