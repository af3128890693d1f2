"""Sums, differences, products and quotients of activations and constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.importers import float_nodes as nodes
from pipeline.importers.builder import Builder
from pipeline.importers.float_graph import Affine
from pipeline.importers.float_nodes import Floats
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value


def arithmetic(
    build: Builder, name: str, a: Value | Floats, b: Value | Floats, alpha: float = 1.0,
    given: Affine | None = None,
) -> Value:  # fmt: skip
    """a + alpha * b, a - alpha * b, a * b, a / b; ``given``: see ``Builder.scale``."""
    one, zero, sign = np.ones(()), np.zeros(()), -alpha if name == "sub" else alpha
    if isinstance(a, Value) and isinstance(b, Value):
        if name == "div":
            raise build.refuse("a division by an activation is not supported")
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
        if name in ("add", "sub"):
            return build.scale(a, one, sign * b, given)
        if name == "div" and not (b != 0).all():
            raise build.refuse("divides by zero")
        return build.scale(a, b if name == "mul" else 1 / b, zero, given)
    if isinstance(a, Value) or not isinstance(b, Value):
        raise build.refuse("an activation is expected")
    if name in ("add", "sub"):
        return build.scale(b, sign * one, a, given)
    x = build.function(b, Composed.of("reciprocal")) if name == "div" else b
    return build.scale(x, a, zero, given)
