"""ADD, SUB and MUL of two int8 tensors, one of which may be a constant; the larger or smaller one;
squared differences; PRELU with constant slopes.

Source of the arithmetic: tflite-micro's integer_ops/add.h and mul.h, sub.h,
maximum_minimum.h, prelu.cc. With a constant of one
value, or a tensor with itself, the result is a function of one value: a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph.families import Pairwise
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
from pipeline.graph.tensor import DType, IntArray
from pipeline.importers.tflite_builder import Builder, require_type, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, fused
from pipeline.importers.tflite_pooling import same_quantization

LEFT_SHIFT = 20
"""Bits by which ADD and SUB enlarge their 8-bit operands."""


def add(build: Builder, node: Node, options: Options) -> None:
    """Broadcast as numpy does; an operand may be constant."""
    _combined(Add, build, node, options, **_sums(node))


class _Difference(Add):
    """Computes what SUB makes of one value; no graph has it."""

    join = np.subtract


def sub(build: Builder, node: Node, options: Options) -> None:
    """Import as ADD, except for pairs of scales, a few in a hundred, with which TFLite rounds a
    value of the second operand other than its negative; not with a constant of one value."""
    arithmetic = _sums(node)
    first, second = arithmetic["operand_requants"]
    values = every(build, node.input(1)) << arithmetic["left_shift"]
    if node.output.type == "INT16":
        turned = FixedPoint((-second.multipliers[0],), second.shifts)
        _negates(node.input(1), turned.apply(values), second.apply(values))
        arithmetic["operand_requants"] = first, turned
        _combined(Add, build, node, options, **arithmetic)
    elif not _tabled(_Difference, build, node, options, arithmetic):
        _negates(node.input(1), second.apply(-values), second.apply(values))
        operands = operand(build, node.input(0)), _negated(build, node.input(1))
        _emitted(Add, build, node, options, operands, arithmetic)


def mul(build: Builder, node: Node, options: Options) -> None:
    """Broadcast as numpy does; an operand may be constant."""
    scales = (tensor.scale for tensor in (node.input(0), node.input(1), node.output))
    a, b, out = map(np.float32, scales) if node.output.unsigned else scales
    _combined(Multiply, build, node, options, requant=FixedPoint.of([float(a * b / out)]))


def prelu(build: Builder, node: Node, options: Options) -> None:
    """To any quantization; slopes are constants that broadcast, such as one a channel."""
    source, slopes = build.source(node.input(0)).name, operand(build, node.input(1))
    if slopes not in build.constants:
        raise ThimbleError("its slopes are computed; constant ones work")
    scale, slope, out = (t.scale for t in (node.input(0), node.input(1), node.output))
    requant, below = FixedPoint.of([scale / out]), FixedPoint.of([scale * slope / out])
    target = build.target(node.output).name
    given = {"operands": (source, slopes), "parameters": (slopes,), "requant": requant}
    build.emit(Prelu, [source], target, below=below, **given)


def extreme(kind: type[Maximum]) -> Callable[[Builder, Node, Options], None]:
    def build_extreme(build: Builder, node: Node, options: Options) -> None:
        """In one quantization; broadcast as numpy does, an operand may be constant."""
        for tensor in (node.input(0), node.input(1)):
            same_quantization(tensor, node.output)
        _combined(kind, build, node, options)

    return build_extreme


def squared_difference(build: Builder, node: Node, options: Options) -> None:
    """Compute int8 of int8, broadcast as numpy does; an operand may be constant."""
    requants, twice = _shared(node)
    requant = FixedPoint.of([twice * twice / ((1 << 14) * node.output.scale)])
    given = {"operand_requants": requants, "requant": requant}
    _combined(SquaredDifference, build, node, options, **given)


def _sums(node: Node) -> dict[str, Any]:
    """Return the arithmetic of a sum; all factors are below 1."""
    shift = 15 if node.output.type == "INT16" else LEFT_SHIFT
    requants, twice = _shared(node)
    total = twice / ((1 << shift) * node.output.scale)
    if total >= 1:
        a, b, out = (tensor.scale for tensor in (node.input(0), node.input(1), node.output))
        raise ThimbleError(f"its output's scale {out:g} is too small for its inputs' {a:g}, {b:g}")
    requant = FixedPoint.of([total])
    return {"left_shift": shift, "operand_requants": requants, "requant": requant}


def _shared(node: Node) -> tuple[tuple[FixedPoint, FixedPoint], float]:
    """Return the factors that bring both operands to one scale, and that scale."""
    a, b = node.input(0).scale, node.input(1).scale
    twice = 2 * max(a, b)
    return (FixedPoint.of([a / twice]), FixedPoint.of([b / twice])), twice


def _combined(
    kind: type[Pairwise], build: Builder, node: Node, options: Options, **arithmetic: Any
) -> None:
    if not _tabled(kind, build, node, options, arithmetic):
        operands = operand(build, node.input(0)), operand(build, node.input(1))
        _emitted(kind, build, node, options, operands, arithmetic)


def _emitted(
    kind: type[Pairwise], build: Builder, node: Node, options: Options, operands: tuple[str, str],
    arithmetic: Mapping[str, Any],
) -> None:  # fmt: skip
    target, clip = build.target(node.output), fused(options, node.output)
    paired(kind, build, operands, target.name, clip=clip, **arithmetic)


def paired(
    kind: type[Pairwise], build: Builder, operands: tuple[str, str], target: str, **fields: Any
) -> None:
    """Append a function of two tensors of the graph, at most one of them constant."""
    held = tuple(name for name in operands if name in build.constants)
    moving = [name for name in operands if name not in held]
    whole = target in build.made.values()
    name = build.label if whole else f"{build.label}_{len(build.operators)}"
    fields |= {"parameters": held, "operands": operands}
    build.operators.append(kind(name, tuple(moving), target, **fields))


def operand(build: Builder, tensor: FileTensor) -> str:
    """Return the graph's tensor: an activation, or a constant that is taken over."""
    if not tensor.data:
        return build.source(tensor).name
    values, dtype = _constant(tensor, build.kinds), tensor.type.lower()
    return build.constant(tensor.name, values, dtype, (tensor.scale,), tensor.zero_point).name


def _constant(tensor: FileTensor, kinds: Sequence[str] = ("INT8",)) -> NDArray[np.integer]:
    require_type(tensor, kinds)
    return values_of(tensor, kinds).reshape(tensor.shape)


def every(build: Builder, tensor: FileTensor) -> IntArray:
    """List all integers that it may hold, less its zero point."""
    require_type(tensor, build.kinds)
    dtype = DType.parse(tensor.type.lower())
    found = (
        _constant(tensor, build.kinds)
        if tensor.data
        else np.arange(dtype.minimum, dtype.maximum + 1)
    )
    return found.reshape(-1).astype(np.int64) - tensor.zero_point


def _negated(build: Builder, tensor: FileTensor) -> str:
    """Make a tensor whose values are those of ``tensor`` with the other sign: ~q, zero point ~z."""
    if tensor.data:
        turned, zero = ~_constant(tensor), ~tensor.zero_point
        return build.constant(tensor.name, turned, "int8", (tensor.scale,), zero).name
    return build.mapped(build.source(tensor), tuple(range(127, -129, -1)), ~tensor.zero_point).name


def _negates(tensor: FileTensor, found: IntArray, wanted: IntArray) -> None:
    """Raises ThimbleError where ``found`` isn't the negative of what is ``wanted``: adding the
    negative is subtracting only if rounding treats both signs alike."""
    if (found != -wanted).any():
        raise ThimbleError(
            f"with its scales, a value of {tensor.name}, which is subtracted, is not rounded as "
            "its negative is; supported are other scales and constants of one value"
        )


def _tabled(
    kind: type[Pairwise], build: Builder, node: Node, options: Options,
    arithmetic: Mapping[str, Any],
) -> bool:  # fmt: skip
    """Compute the result by a table if it depends on one value; return whether it does."""
    operands = node.input(0), node.input(1)
    moving = [tensor for tensor in operands if not (tensor.data and tensor.size == 1)]
    wide = node.output.type == "INT16"
    if wide or not moving or any(t is not moving[0] or t.data for t in moving):
        return False
    source = build.source(moving[0])
    target, clip = build.target(node.output, shape=source.shape), fused(options, node.output)
    op = kind("", (), target.name, clip=clip, **arithmetic)
    joined = op.joined(*(np.broadcast_to(every(build, each), 256) for each in operands))
    table = op.finish({target.name: target}, ((0, 1),), joined, {})
    build.emit(Lookup, [source.name], target.name, table=tuple(table.tolist()))
    build.finish(node.output, target)
    return True


OPERATORS = {
    "ADD": Entry(add, "AddOptions", "activation:i8"),
    "SUB": Entry(sub, "SubOptions", "activation:i8"),
    "MUL": Entry(mul, "MulOptions", "activation:i8"),
    "PRELU": Entry(prelu),
    "MAXIMUM": Entry(extreme(Maximum)),
    "MINIMUM": Entry(extreme(Minimum)),
    "SQUARED_DIFFERENCE": Entry(squared_difference),
}
