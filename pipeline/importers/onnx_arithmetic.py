"""Sums, differences, products and quotients of ONNX, of activations and of constants."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Constant, Item, Table

ONE, ZERO = np.ones(()), np.zeros(())


def given(constant: Constant) -> Affine | None:
    """A quantized constant's own scale, where one number is: its values are multiples of it."""
    steps = constant.steps
    if steps is None or steps.size != 1:
        return None
    step = float(steps.reshape(-1)[0])
    multiples = constant.floats / step
    middle = 0 if multiples.size == 0 else round(-128 - multiples.min())
    zero_point = 0 if np.abs(multiples).max(initial=0) <= 127 else middle
    return Affine(step, int(np.clip(zero_point, -128, 127)))


def operands(call: Call) -> tuple[Value | Constant, Value | Constant]:
    if len(call.items) != 2:
        raise call.refuse(f"{len(call.items)} inputs, two are expected")
    found = []
    for index, item in enumerate(call.items):
        found.append(item if isinstance(item, Constant) else call.value(index))
    return found[0], found[1]


def add(call: Call) -> Value:
    a, b = operands(call)
    if isinstance(a, Value) and isinstance(b, Value):
        return call.builder.binary(nodes.Sum, a, b)
    x, constant = ordered(call, a, b)
    return call.builder.scale(x, ONE, constant.floats, given(constant))


def ordered(call: Call, a: Value | Constant, b: Value | Constant) -> tuple[Value, Constant]:
    if isinstance(a, Value) and isinstance(b, Constant):
        return a, b
    if isinstance(b, Value) and isinstance(a, Constant):
        return b, a
    raise call.refuse("an activation is expected")


def subtract(call: Call) -> Value:
    a, b = operands(call)
    if isinstance(a, Value) and isinstance(b, Value):
        negative = call.builder.function(b, Composed.of("neg"))
        known = call.builder.given.get(b.tensor)
        if known is not None:  # -q - 1 is an int8 as well
            call.builder.given[negative.tensor] = Affine(known.scale, -1 - known.zero_point)
        return call.builder.binary(nodes.Sum, a, negative)
    x, constant = ordered(call, a, b)
    if isinstance(a, Value):
        return call.builder.scale(x, ONE, -constant.floats)
    return call.builder.scale(x, -ONE, constant.floats)


def multiply(call: Call) -> Value:
    a, b = operands(call)
    if isinstance(a, Value) and isinstance(b, Value):
        return call.builder.binary(nodes.Product, a, b)
    x, constant = ordered(call, a, b)
    return call.builder.scale(x, constant.floats, ZERO, given(constant))


def divide(call: Call) -> Value:
    a, b = operands(call)
    if isinstance(a, Value) and isinstance(b, Constant):
        if not (b.floats != 0).all():
            raise call.refuse("divides by zero")
        return call.builder.scale(a, 1 / b.floats, ZERO)
    if isinstance(a, Constant) and isinstance(b, Value):
        return call.builder.scale(
            call.builder.function(b, Composed.of("reciprocal")), a.floats, ZERO
        )
    raise call.refuse("a division by an activation is not supported")


def total(call: Call) -> Value:
    """Sum: of any number of inputs."""
    result: Value | None = None
    constants: list[Constant] = []
    for index in range(len(call.items)):
        found = call.item(index)
        if isinstance(found, Constant):
            constants.append(found)
            continue
        part = call.value(index)
        result = part if result is None else call.builder.binary(nodes.Sum, result, part)
    if result is None:
        raise call.refuse("has no inputs")
    for constant in constants:
        result = call.builder.scale(result, ONE, constant.floats)
    return result


def limit(low: bool) -> Callable[[Call], Item]:
    """Max, Min with one number."""

    def limited(call: Call) -> Item:
        x, constant = ordered(call, *operands(call))
        if constant.values.size != 1:
            raise call.refuse("only with one number")
        number = float(constant.floats.reshape(-1)[0])
        ends = (number, inf) if low else (-inf, number)
        return call.builder.function(x, Composed.of("clip", *ends))

    return limited


OPERATORS: Table = {
    "Add": add,
    "Sub": subtract,
    "Mul": multiply,
    "Div": divide,
    "Sum": total,
    "Max": limit(low=True),
    "Min": limit(low=False),
}
