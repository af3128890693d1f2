"""Sums, differences, products and quotients of ONNX, of activations and of constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from pipeline.importers.arithmetic import arithmetic, chosen, compared, extreme
from pipeline.importers.float_graph import Affine
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Constant, Item, Table, scalar


def given(constant: Constant) -> Affine | None:
    """Return a quantized constant's own scale, where one number is: its values are multiples of it,
    of 8 bits or 16."""
    steps = constant.steps
    if steps is None or steps.size != 1:
        return None
    step = float(steps.reshape(-1)[0])
    multiples = constant.floats / step
    least, most = round(multiples.min(initial=0)), round(multiples.max(initial=0))
    bits = 8 if most - least < 256 else 16
    end = 1 << bits - 1
    zero_point = 0 if max(-least, most) < end else -end - least
    return Affine(step, min(max(zero_point, -end), end - 1), bits)


def combined(call: Call, name: str) -> Value:
    a, b = operands(call)
    constants = [each for each in (a, b) if isinstance(each, Constant)]
    own = given(constants[0]) if constants else None
    first, second = (each.floats if isinstance(each, Constant) else each for each in (a, b))
    return arithmetic(call.builder, name, first, second, given=own)


def operands(call: Call) -> tuple[Value | Constant, Value | Constant]:
    """Both inputs; before opset 7 the second one's axes begin at ``axis``."""
    _expect(call, 2)
    first, second = (
        item if isinstance(item, Constant) else call.value(index)
        for index, item in enumerate(call.items)
    )
    if "axis" in call.node.attributes and isinstance(first, Value) and isinstance(second, Constant):
        if (axis := call.integer("axis", 0)) < 0:
            raise call.refuse(f"its axis {axis}: 0 or more is needed")
        behind = len(first.shape) - axis - second.values.ndim
        shape = (*second.values.shape, *(1,) * behind)
        return first, replace(second, values=second.values.reshape(shape))
    return first, second


def _expect(call: Call, count: int) -> None:
    if len(call.items) != count:
        raise call.refuse(f"{len(call.items)} inputs, {count} are expected")


def total(call: Call) -> Value:
    """Sum"""
    return of_all(call, partial(arithmetic, call.builder, "add"))


def limit(call: Call, greatest: bool) -> Value:
    """Max, Min"""
    return of_all(call, partial(extreme, call.builder, greatest))


def of_all(call: Call, join: Callable[[Any, Any], Value]) -> Value:
    """Join any number of inputs."""
    found = sorted(call.reals, key=lambda each: not isinstance(each, Value))
    if not found:
        raise call.refuse("has no inputs")
    result = reduce(join, found)
    if not isinstance(result, Value):
        raise call.refuse("an activation is expected")
    return result


def comparison(call: Call, name: str) -> Value:
    _expect(call, 2)
    first, second = call.reals
    return compared(call.builder, name, first, second)


def where(call: Call) -> Item:
    _expect(call, 3)
    condition, a, b = call.reals
    return chosen(call.builder, condition, a, b)


def power(call: Call) -> Value:
    found = call.item(1)
    if not isinstance(found, Constant) or found.values.size != 1:
        raise call.refuse("a power with a constant exponent, one number, is supported")
    return call.builder.function(call.x, Composed.of("power", scalar(call, 1, 1.0)))


OPERATORS: Table = {
    **{name.capitalize(): partial(combined, name=name) for name in ("add", "sub", "mul", "div")},
    "Sum": total,
    "Max": partial(limit, greatest=True),
    "Min": partial(limit, greatest=False),
    "Less": partial(comparison, name="less"),
    "LessOrEqual": partial(comparison, name="less_equal"),
    "Greater": partial(comparison, name="greater"),
    "GreaterOrEqual": partial(comparison, name="greater_equal"),
    "Equal": partial(comparison, name="equal"),
    "Where": where,
    "And": partial(combined, name="mul"),
    "Pow": power,
}
