"""ADD, SUB and MUL of two int8 tensors, one of which may be a constant; the larger or smaller one;
squared differences; PRELU with constant slopes.

Source of the arithmetic: tflite-micro's integer_ops/add.h and mul.h, sub.h,
maximum_minimum.h, prelu.cc. With a constant of one
value, or a tensor with itself, the result is a function of one value: a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph.operator import limits
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import (
    Add,
    Maximum,
    Minimum,
    Multiply,
    Prelu,
    SquaredDifference,
)
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray
from pipeline.importers.tflite_builder import Builder, require_type, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, fused
from pipeline.importers.tflite_pooling import same_quantization

LEFT_SHIFT = 20
"""Bits by which ADD and SUB enlarge their 8-bit operands."""

Rule = Callable[[IntArray, IntArray], IntArray]
"""Two operands to the result; all less their zero points."""


def add(build: Builder, node: Node, options: Options) -> None:
    """Broadcast as numpy does; an operand may be constant."""
    requants, requant = _factors(node)

    def rule(x: IntArray, y: IntArray) -> IntArray:
        return requant.apply(_enlarged(requants[0], x) + _enlarged(requants[1], y))

    if not _tabled(build, node, options, rule):
        _sum(build, node, options, (_operand(build, node.input(0)), _operand(build, node.input(1))))


def sub(build: Builder, node: Node, options: Options) -> None:
    """As ADD, except for pairs of scales, a few in a hundred, with which TFLite rounds a value of
    the second operand other than its negative; not with a constant of one value."""
    requants, requant = _factors(node)
    if node.output.type == "INT16":
        operands = _operand(build, node.input(0)), _operand(build, node.input(1))
        return _sum(build, node, options, operands, minus=True)

    def rule(x: IntArray, y: IntArray) -> IntArray:
        return requant.apply(_enlarged(requants[0], x) - _enlarged(requants[1], y))

    if not _tabled(build, node, options, rule):
        first = _operand(build, node.input(0))
        _sum(build, node, options, (first, _negated(build, node.input(1), requants[1])))


def mul(build: Builder, node: Node, options: Options) -> None:
    """Broadcast as numpy does; an operand may be constant."""
    scales = (tensor.scale for tensor in (node.input(0), node.input(1), node.output))
    a, b, out = map(np.float32, scales) if node.output.unsigned else scales
    requant = FixedPoint.of([float(a * b / out)])
    if _tabled(build, node, options, lambda x, y: requant.apply(x * y)):
        return
    operands = _operand(build, node.input(0)), _operand(build, node.input(1))
    _combined(Multiply, build, node, options, operands, requant=requant)


def prelu(build: Builder, node: Node, options: Options) -> None:
    """To any quantization; slopes are constants that broadcast, such as one a channel."""
    source, slopes = build.source(node.input(0)).name, _operand(build, node.input(1))
    if slopes not in build.constants:
        raise ThimbleError("its slopes are computed; constant ones work")
    scale, slope, out = (t.scale for t in (node.input(0), node.input(1), node.output))
    requant, below = FixedPoint.of([scale / out]), FixedPoint.of([scale * slope / out])
    target = build.target(node.output).name
    given = {"operands": (source, slopes), "parameters": (slopes,), "requant": requant}
    build.emit(Prelu, [source], target, below=below, **given)


def extreme(choose: Rule, kind: type[Maximum]) -> Callable[[Builder, Node, Options], None]:
    def build_extreme(build: Builder, node: Node, options: Options) -> None:
        """In one quantization; broadcast as numpy does, an operand may be constant."""
        given = node.input(0), node.input(1)
        for tensor in given:
            same_quantization(tensor, node.output)
        if not _tabled(build, node, {"activation": 0}, choose):
            first, second = (_operand(build, each) for each in given)
            _combined(kind, build, node, {"activation": 0}, (first, second))

    return build_extreme


def squared_difference(build: Builder, node: Node, options: Options) -> None:
    """Compute int8 of int8, broadcast as numpy does; an operand may be constant."""
    a, b, out = (tensor.scale for tensor in (node.input(0), node.input(1), node.output))
    twice = 2 * max(a, b)
    requants = FixedPoint.of([a / twice]), FixedPoint.of([b / twice])
    requant = FixedPoint.of([twice * twice / ((1 << 14) * out)])

    def rule(x: IntArray, y: IntArray) -> IntArray:
        return requant.apply((requants[0].apply(x << 7) - requants[1].apply(y << 7)) ** 2)

    if not _tabled(build, node, {"activation": 0}, rule):
        operands = _operand(build, node.input(0)), _operand(build, node.input(1))
        arithmetic = {"operand_requants": requants, "requant": requant}
        _combined(SquaredDifference, build, node, {"activation": 0}, operands, **arithmetic)


def _factors(node: Node) -> tuple[tuple[FixedPoint, FixedPoint], FixedPoint]:
    """Return the factors of both operands and of their sum, all below 1."""
    a, b, out = (tensor.scale for tensor in (node.input(0), node.input(1), node.output))
    twice = 2 * max(a, b)
    total = twice / ((1 << _shift(node)) * out)
    if total >= 1:
        raise ThimbleError(f"its output's scale {out:g} is too small for its inputs' {a:g}, {b:g}")
    return (FixedPoint.of([a / twice]), FixedPoint.of([b / twice])), FixedPoint.of([total])


def _shift(node: Node) -> int:
    """Bits by which ADD enlarges its operands: fewer of 16 than of 8."""
    return 15 if node.output.type == "INT16" else LEFT_SHIFT


def _enlarged(requant: FixedPoint, x: IntArray) -> IntArray:
    return requant.apply(x << LEFT_SHIFT)


def _sum(
    build: Builder, node: Node, options: Options, operands: tuple[str, str], minus: bool = False
) -> None:
    (first, second), requant = _factors(node)
    if minus:
        taken, whole = node.input(1), second
        second = FixedPoint((-whole.multipliers[0],), whole.shifts)
        every = _constant(taken, build.kinds) if taken.data else np.arange(-(1 << 15), 1 << 15)
        enlarged = every.astype(np.int64) << _shift(node)
        _negates(taken, second.apply(enlarged), whole.apply(enlarged))
    arithmetic = {
        "left_shift": _shift(node), "operand_requants": (first, second), "requant": requant
    }  # fmt: skip
    _combined(Add, build, node, options, operands, **arithmetic)


def _combined(
    kind: type[Add | Multiply | Maximum | SquaredDifference], build: Builder, node: Node,
    options: Options, operands: tuple[str, str], **arithmetic: Any,
) -> None:  # fmt: skip
    target, clip = build.target(node.output), fused(options, node.output)
    held = tuple(name for name in operands if name in build.constants)
    moving = [name for name in operands if name not in held]
    given = {"parameters": held, "operands": operands, "clip": clip}
    build.emit(kind, moving, target.name, **given, **arithmetic)


def _operand(build: Builder, tensor: FileTensor) -> str:
    """The graph's tensor: an activation, or a constant that is taken over."""
    if not tensor.data:
        return build.source(tensor).name
    values, dtype = _constant(tensor, build.kinds), tensor.type.lower()
    return build.constant(tensor.name, values, dtype, (tensor.scale,), tensor.zero_point).name


def _constant(tensor: FileTensor, kinds: Sequence[str] = ("INT8",)) -> NDArray[np.integer]:
    require_type(tensor, kinds)
    return values_of(tensor, kinds).reshape(tensor.shape)


def _negated(build: Builder, tensor: FileTensor, requant: FixedPoint) -> str:
    """A tensor whose values are those of ``tensor`` with the other sign: ~q, zero point ~z.

    Adding it is subtracting only if rounding treats both signs alike, which is tried with all
    values there are.
    """
    values = _constant(tensor) if tensor.data else np.arange(-128, 128)
    x = values.astype(np.int64) - tensor.zero_point
    _negates(tensor, _enlarged(requant, -x), _enlarged(requant, x))
    if tensor.data:
        held = build.constant(tensor.name, ~values, "int8", (tensor.scale,), ~tensor.zero_point)
        return held.name
    return build.mapped(build.source(tensor), tuple(range(127, -129, -1)), ~tensor.zero_point).name


def _negates(tensor: FileTensor, found: IntArray, wanted: IntArray) -> None:
    """Raises ThimbleError where ``found`` isn't the negative of what is ``wanted``."""
    if (found != -wanted).any():
        raise ThimbleError(
            f"with its scales, a value of {tensor.name}, which is subtracted, is not rounded as "
            "its negative is; supported are other scales and constants of one value"
        )


def _tabled(build: Builder, node: Node, options: Options, rule: Rule) -> bool:
    """Compute the result by a table if it depends on one value; return whether it does."""
    operands = node.input(0), node.input(1)
    moving = [tensor for tensor in operands if not (tensor.data and tensor.size == 1)]
    wide = node.output.type == "INT16"
    if wide or not moving or any(t is not moving[0] or t.data for t in moving):
        return False
    source = build.source(moving[0])
    each = np.arange(source.dtype.minimum, source.dtype.maximum + 1, dtype=np.int64)
    first, second = (
        (each if tensor is moving[0] else np.full_like(each, _constant(tensor).item()))
        - tensor.zero_point
        for tensor in operands
    )
    target = build.target(node.output, shape=source.shape)
    stored = rule(first, second) + target.zero_point
    clipped = np.clip(stored, *limits(target, fused(options, node.output)))
    build.emit(Lookup, [source.name], target.name, table=tuple(int(q) for q in clipped))
    build.finish(node.output, target)
    return True


OPERATORS = {
    "ADD": Entry(add, "AddOptions", "activation:i8"),
    "SUB": Entry(sub, "SubOptions", "activation:i8"),
    "MUL": Entry(mul, "MulOptions", "activation:i8"),
    "PRELU": Entry(prelu),
    "MAXIMUM": Entry(extreme(np.maximum, Maximum)),
    "MINIMUM": Entry(extreme(np.minimum, Minimum)),
    "SQUARED_DIFFERENCE": Entry(squared_difference),
}
