"""Constant folding for ONNX models: of shapes, mostly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from pipeline.importers.float_graph import checked_size
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Constant
from pipeline.importers.onnx_file import Array
from pipeline.importers.onnx_shapes import RENAMES, axes_of
from pipeline.importers.onnx_slices import gather, slice_

TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_,
         10: np.float16, 11: np.float64}  # fmt: skip


GIVEN = ("value", "value_float", "value_floats", "value_int", "value_ints")


def given(call: Call) -> Constant:
    """Constant"""
    for name, value in call.node.attributes.items():
        if value is not None and name in GIVEN:
            kind = {"value_float": np.float32, "value_floats": np.float32}.get(name)
            found = np.asarray(value) if isinstance(value, str) else np.asarray(value, dtype=kind)
            if found.dtype.kind not in "biuf":
                break
            return Constant(found)
    raise call.refuse("a constant of this kind is not supported")


def concat(call: Call, *parts: Array) -> Array:
    if len({part.ndim for part in parts}) != 1 or not parts[0].ndim:
        raise call.refuse("its inputs have different numbers of axes")
    checked_size(call.node.where, (max(1, sum(part.size for part in parts)),))
    return np.concatenate(parts, call.axis(call.integer("axis", 0), parts[0].ndim))


def filled(call: Call, shape: Array) -> Array:
    """ConstantOfShape"""
    sizes = tuple(int(extent) for extent in shape.reshape(-1)[:8])
    value = np.asarray(call.node.attributes.get("value", np.zeros(1, np.float32))).reshape(-1)
    if any(extent < 0 for extent in sizes) or value.size != 1 or value.dtype.kind not in "biuf":
        raise call.refuse(f"a constant of shape {list(sizes)}")
    if prod(sizes):
        checked_size(call.node.where, sizes)
    return np.full(sizes, value[0])


def expand(call: Call, data: Array, shape: Array) -> Array:
    sizes = np.broadcast_shapes(data.shape, tuple(int(n) for n in shape.reshape(-1)[:8]))
    return np.broadcast_to(data, checked_size(call.node.where, sizes))


def ranged(call: Call, start: Array, stop: Array, step: Array) -> Array:
    checked_size(call.node.where, (max(1, int((stop.item() - start.item()) / step.item())),))
    return np.arange(start.item(), stop.item(), step.item(), dtype=start.dtype)


def tiled(call: Call, data: Array, counts: Array) -> Array:
    checked_size(call.node.where, (max(1, data.size * prod(counts.reshape(-1).tolist())),))
    return np.tile(data, counts)


def cast(call: Call, data: Array) -> Array:
    to = call.integer("to", 1)
    if to not in TYPES:
        raise call.refuse(f"a cast to type {to} is not supported")
    return data.astype(TYPES[to])


def moved(rename: Callable[[Call, Value], Value]) -> Callable[..., Array]:
    """Do with a constant's elements what is done with an activation's."""

    def made(call: Call, data: Array, *_: Array) -> Array:
        places = Value("", np.arange(data.size).reshape(data.shape))
        return data.reshape(-1)[rename(call, places).index]

    return made


def divide(call: Call, a: Array, b: Array) -> Array:
    if not (b != 0).all():
        raise call.refuse("divides by zero")
    return a // b if a.dtype.kind in "iu" else a / b


def arithmetic(function: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def made(call: Call, a: Array, b: Array) -> Array:
        checked_size(call.node.where, np.broadcast_shapes(a.shape, b.shape) or (1,))
        return np.asarray(function(a, b))

    return made


FOLDS: Mapping[str, Callable[..., Array]] = {
    **{name: moved(rule) for name, rule in RENAMES.items()},
    "Add": arithmetic(np.add),
    "Cast": cast,
    "Concat": concat,
    "ConstantOfShape": filled,
    "Div": divide,
    "Abs": lambda call, x: np.abs(x),
    "Ceil": lambda call, x: np.ceil(x),
    "Equal": arithmetic(np.equal),
    "Exp": lambda call, x: np.exp(x),
    "Expand": expand,
    "Floor": lambda call, x: np.floor(x),
    "Greater": arithmetic(np.greater),
    "Less": arithmetic(np.less),
    "Max": lambda call, *parts: reduce(np.maximum, parts),
    "Min": lambda call, *parts: reduce(np.minimum, parts),
    "Mod": arithmetic(np.mod),
    "Pow": arithmetic(np.power),
    "Range": ranged,
    "ReduceProd": lambda call, x, *_: np.atleast_1d(np.prod(x)),
    "Size": lambda call, x: np.array(x.size, dtype=np.int64),
    "Tile": tiled,
    "Where": lambda call, condition, a, b: np.asarray(np.where(condition, a, b)),
    "Gather": lambda call, x, *_: gather(call, x),
    "Mul": arithmetic(np.multiply),
    "Neg": lambda call, x: -x,
    "Reciprocal": lambda call, x: divide(call, np.ones((), x.dtype), x),
    "Shape": lambda call, x: axes_of(call, x.shape),
    "Slice": lambda call, x, *_: slice_(call, x),
    "Sqrt": lambda call, x: np.sqrt(x),
    "Sub": arithmetic(np.subtract),
}


def folded(call: Call) -> Constant:
    """Return the constant that an operator on constants gives."""
    rule = FOLDS.get(call.node.operator)
    if rule is None:
        raise call.refuse("it is not supported on constants")
    parts = [item.values for item in call.items if isinstance(item, Constant)]
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(rule(call, *parts))
    except (ValueError, TypeError, IndexError, OverflowError, np.exceptions.AxisError):
        given = ", ".join(f"{each.dtype}{list(each.shape)}" for each in parts)
        raise call.refuse(f"cannot be computed of {len(parts)} constants, {given}") from None
    first = call.items[0]
    if not isinstance(first, Constant) or first.steps is None:
        return Constant(result)
    if call.node.operator not in RENAMES:  # which keep quantized values multiples of their step
        return Constant(result)
    if first.steps.size == 1:
        return Constant(result, first.steps.reshape(()))
    if call.node.operator == "Transpose":
        return Constant(result, rule(call, first.steps))
    return Constant(result, first.steps if call.node.operator == "Identity" else None)
