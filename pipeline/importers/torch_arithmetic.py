"""Sums, differences, products and quotients of ATen, of activations and of constants."""

from __future__ import annotations

from functools import partial

from pipeline.importers.arithmetic import arithmetic
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


OPERATORS: Table = {
    **{
        f"aten.{name}.{of}": partial(combined, name=name)
        for name in ("add", "sub", "mul", "div")
        for of in ("Tensor", "Scalar")
    },
    "aten.rsub.Scalar": rsub,
}
