"""Sums, differences, products, quotients, extremes and comparisons of activations and constants."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.importers import float_nodes as nodes
from pipeline.importers.builder import Builder
from pipeline.importers.float_graph import Affine
from pipeline.importers.float_nodes import Floats
from pipeline.importers.float_pairs import Hidden, Maximum, Minimum, Order, Quotient
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.moving import expanded

HIDES = -1e4
"""What is added to scores to hide them is no greater."""


def arithmetic(
    build: Builder, name: str, a: Value | Floats, b: Value | Floats, alpha: float = 1.0,
    given: Affine | None = None,
) -> Value:  # fmt: skip
    """a + alpha * b, a - alpha * b, a * b, a / b; ``given``: see ``Builder.scale``."""
    one, zero, sign = np.ones(()), np.zeros(()), -alpha if name == "sub" else alpha
    if name == "add" and alpha == 1 and not isinstance(a, Value):
        a, b = b, a
    if isinstance(a, Value) and isinstance(b, Value):
        if name == "div":
            return build.binary(Quotient, a, b)
        if name == "mul":
            return build.binary(nodes.Product, a, b)
        known = build.given.get(b.tensor)
        if sign != 1:
            body = Composed.of("neg") if sign == -1 else Composed.of("affine", sign, 0.0)
            b = build.function(b, body)
            if known and sign == -1:  # -q - 1 is an integer of as many bits
                build.given[b.tensor] = replace(known, zero_point=-1 - known.zero_point)
        return build.binary(nodes.Sum, a, b)
    given = given if name in ("add", "mul") else None
    if isinstance(a, Value) and not isinstance(b, Value):
        a = _widened(build, a, b)
        if name in ("add", "sub"):
            hides = sign * b <= HIDES
            if hides.all() or not hides.any():
                return build.scale(a, one, sign * b, given)
            shown = np.where(hides, 0, sign * b)
            return hidden(build, build.scale(a, one, shown, given) if shown.any() else a, hides)
        if name == "div" and not (b != 0).all():
            raise build.refuse("divides by zero")
        return build.scale(a, b if name == "mul" else 1 / b, zero, given)
    if isinstance(a, Value) or not isinstance(b, Value):
        raise build.refuse("an activation is expected")
    b = _widened(build, b, a)
    if name in ("add", "sub"):
        return build.scale(b, sign * one, a, given)
    x = build.function(b, Composed.of("reciprocal")) if name == "div" else b
    return build.scale(x, a, zero, given)


def _widened(build: Builder, x: Value, constant: NDArray[Any]) -> Value:
    """``x``, broadcast as far as ``constant`` does."""
    with suppress(ValueError):  # refused where it is stored
        return expanded(build, x, np.broadcast_shapes(x.shape, constant.shape))
    return x


def extreme(build: Builder, greatest: bool, a: Value | Floats, b: Value | Floats) -> Value:
    """Return the greater of two elements, or the smaller."""
    kind = Maximum if greatest else Minimum
    if isinstance(a, Value) and isinstance(b, Value):
        return build.binary(kind, a, b)
    x, constant = (a, b) if isinstance(a, Value) else (b, a)
    if not isinstance(x, Value) or isinstance(constant, Value):
        raise build.refuse("an activation is expected")
    if alike(constant):
        number = float(constant.flat[0])
        ends = (number, inf) if greatest else (-inf, number)
        return build.function(x, Composed.of("clip", *ends))
    held = build.stored(constant, x)
    return Value(build.add(kind, [x.tensor], constant=held), x.index)


def hidden(build: Builder, x: Value, places: NDArray[np.bool_]) -> Value:
    """Change ``x`` so that a softmax has nothing at ``places``, which broadcast."""
    x = _widened(build, x, places)
    held = build.stored(places.astype(float), x) > 0
    held = held[:1] if (held == held[:1]).all() else held
    return Value(build.add(Hidden, [x.tensor], places=held), x.index)


def alike(constant: Floats) -> bool:
    """Check whether all are one number."""
    return bool((constant == constant.flat[0]).all())


TURNED = {"less": "greater", "greater": "less", "less_equal": "greater_equal",
          "greater_equal": "less_equal"}  # fmt: skip


def compared(build: Builder, name: str, a: Value | Floats, b: Value | Floats) -> Value:
    """1 where a is ``less`` than b, and so forth, else 0."""
    if not isinstance(a, Value):
        a, b, name = b, a, TURNED.get(name, name)
    if isinstance(a, Value) and isinstance(b, Value):
        a, b = build.binary(Order, a, b), np.zeros(1)
    elif isinstance(b, Value) or not alike(b):
        a, b = arithmetic(build, "sub", a, b), np.zeros(1)
    if not isinstance(a, Value):
        raise build.refuse("an activation is expected")
    return build.function(a, Composed.of(name, float(b.flat[0])))


def chosen(
    build: Builder, condition: Value | Floats, a: Value | Floats, b: Value | Floats
) -> Value:
    """a where the condition, which is 0 or 1, holds, else b."""
    for x, rest, where in ((a, b, False), (b, a, True)):
        fixed = not isinstance(condition, Value) and not isinstance(rest, Value)
        if isinstance(x, Value) and fixed and (np.asarray(rest) <= HIDES).all():
            return hidden(build, x, np.asarray(condition, bool) == where)
    if not all(isinstance(each, Value) or np.isfinite(each).all() for each in (a, b)):
        raise build.refuse("it chooses infinite numbers")
    if isinstance(condition, Value):
        other: Value | Floats = build.function(condition, Composed.of("affine", -1.0, 1.0))
    else:
        holds = np.asarray(condition, bool)
        condition, other = holds.astype(float), (~holds).astype(float)
    return arithmetic(build, "add", _times(build, condition, a), _times(build, other, b))


def _times(build: Builder, a: Value | Floats, b: Value | Floats) -> Value | Floats:
    if isinstance(a, Value) or isinstance(b, Value):
        return arithmetic(build, "mul", a, b)
    return a * b
