"""Functions of one 8-bit activation that a file computes in float, in whole numbers or as truth
values, between DEQUANTIZE (or CAST) and QUANTIZE: their results for each of the 256 integers.

Source of the arithmetic: LiteRT's elementwise.cc, gelu.h, lut.h (int8 by a table), comparisons.h,
select.h, gather.h; tflite-micro's elementwise.cc (int8 ABS and RSQRT), exp.cc, elu.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.requant import FixedPoint
from pipeline.importers.tflite_builder import Builder, Real, require_type, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import LIMITS, Entry, Options, axis_of
from pipeline.importers.tflite_pairs import compared, div, selected
from pipeline.importers.tflite_tables import by_table, nearest, rounded_table, wide

KINDS: Mapping[str, type[np.generic]] = {
    "FLOAT32": np.float32, "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_,
    "INT8": np.int64,
}  # fmt: skip
STORED = ("INT8", "UINT8", "INT16")
Values = NDArray[Any]


def _rounded(function: Any) -> Callable[..., Any]:
    """Compute it in double precision and round once, as C's of floats all but do: NumPy's own
    differs by processor."""

    def made(*given: Any) -> Any:
        return function(*given, dtype=np.float64).astype(np.result_type(np.float32, *given))

    return made


EXP, TANH = _rounded(np.exp), _rounded(np.tanh)


def _inner(x: Any) -> Any:
    return np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)


def unary(options: Options) -> Mapping[str, Callable[[Any], Any]]:
    """Functions of one number; with ``options`` that some have."""
    half, tanh = np.float32(0.5), options.get("approximate")
    return {
        "ABS": np.abs, "NEG": np.negative, "EXP": EXP, "LOG": _rounded(np.log), "SQRT": np.sqrt,
        "SQUARE": np.square, "SIN": _rounded(np.sin), "COS": _rounded(np.cos), "FLOOR": np.floor,
        "CEIL": np.ceil,
        "ROUND": np.rint, "SIGN": np.sign, "TANH": TANH, "LOGICAL_NOT": np.logical_not,
        "RSQRT": lambda x: 1 / np.sqrt(x),
        "ELU": lambda x: np.where(x < 0, _rounded(np.expm1)(x), x),
        "GELU": lambda x: half * x * (1 + (TANH(_inner(x)) if tanh else ERF(x / 2**0.5))),
        "CAST": lambda x: np.trunc(x) if x.dtype.kind == "f" else x,
        "RELU": lambda x: x.clip(0),
        "RELU6": lambda x: x.clip(0, 6),
        "RELU_0_TO_1": lambda x: x.clip(0, 1),
        "RELU_N1_TO_1": lambda x: x.clip(-1, 1),
        "LOGISTIC": lambda x: 1 / (1 + EXP(-x)),
        "HARD_SWISH": lambda x: x * (x + 3).clip(0, 6) / 6,
        "LEAKY_RELU": lambda x: np.where(x < 0, np.float32(options["alpha"]) * x, x),
    }  # fmt: skip


ERF: Callable[[Any], Any] = np.vectorize(erf, otypes=[np.float32])
SEVERAL: Mapping[str, Callable[..., Any]] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide,
    "POW": _rounded(np.power),
    "MAXIMUM": np.maximum, "MINIMUM": np.minimum, "FLOOR_DIV": np.floor_divide, "FLOOR_MOD": np.mod,
    "SQUARED_DIFFERENCE": lambda x, y: (x - y) * (x - y), "LESS": np.less, "GREATER": np.greater,
    "LESS_EQUAL": np.less_equal, "GREATER_EQUAL": np.greater_equal, "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal, "LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or,
    "SELECT": np.where, "SELECT_V2": np.where,
}  # fmt: skip
ORDERS = ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")
OWN = (
    *("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "LOGISTIC", "TANH", "RELU"),
    *("RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LEAKY_RELU"),
)
"""Those with arithmetic of their own on int8 activations."""


def computes(build: Builder, node: Node) -> bool:
    """Check whether it makes real numbers, or whatever else is no quantized activation, or reads
    such."""
    if node.kind in ("QUANTIZE", "DEQUANTIZE", "CONV_3D"):
        return False
    reads = (each for each in node.inputs if each is not None)
    made = any(each.type not in STORED for each in node.outputs)
    return (made and node.kind in OPERATORS.keys() | {*OWN}) or any(
        each.index in build.reals for each in reads
    )


def function(build: Builder, node: Node, options: Options) -> None:
    """Compute int8 by a table of results that are rounded once; of real numbers between DEQUANTIZE
    and QUANTIZE."""
    if node.kind in SEVERAL:
        raise ThimbleError("of two int8 activations it is not supported")
    rounded_table(build, node, unary(options)[node.kind])


def rule(build: Builder, node: Node, options: Options) -> None:
    """Compute the results for all integers of the one activation that they depend on."""
    if node.kind in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE"):
        shaped = build.shaped(_source(build, node.input(0)) or "", node.output.shape)
        build.reals[node.output.index] = Real(shaped, _values(build, node.input(0)))
        return
    if node.kind in ("GATHER", "EMBEDDING_LOOKUP"):
        return _embedded(build, node, options)
    functions = unary(options)
    if node.kind not in functions and node.kind not in SEVERAL:
        given_as = node.input(0).type.lower()
        raise ThimbleError(f"of {given_as} it is not supported, being no function of one value")
    given = [each for each in node.inputs if each is not None]
    if node.kind in ORDERS and [each.type for each in given] == ["INT8"] * 2:
        return ordered(build, node, options)
    sources = {_source(build, each) for each in given} - {None}
    condition = build.reals.get(given[0].index) if node.kind.startswith("SELECT") else None
    if condition and len(sources) > 1 and [each.type for each in given[1:]] == ["INT8"] * 2:
        return selected(build, node, condition)
    if len(sources) != 1:
        raise ThimbleError(
            "it is no function of one value: what is not quantized has to depend on one int8 "
            "activation alone, element by element"
        )
    (source,) = sources
    assert source is not None
    values = [_values(build, each) for each in given]
    wanted = 1 if node.kind in functions else 3 if node.kind.startswith("SELECT") else 2
    if len(values) != wanted:
        raise ThimbleError(f"it has {len(values)} inputs, {wanted} are expected")
    try:
        with np.errstate(all="ignore"):
            made = np.asarray({**functions, **SEVERAL}[node.kind](*values))
            if options.get("activation"):
                made = made.clip(*LIMITS[options["activation"]])
    except (ArithmeticError, KeyError, TypeError, ValueError):
        kinds = ", ".join(each.type.lower() for each in given)
        raise ThimbleError(f"of {kinds} it is not supported") from None
    name = build.shaped(source, node.output.shape)
    if node.output.type in STORED:  # SELECT of stored integers
        if not np.isfinite(made).all():
            raise ThimbleError(f"{node.output.name} is of integers, and chosen from infinity")
        table = tuple(int(value) for value in np.broadcast_to(made, (256,)))
        return build.emit(Lookup, [name], build.target(node.output).name, table=table)
    kind = KINDS.get(node.output.type)
    if kind is None:
        raise ThimbleError(f"{node.output.name} is {node.output.type.lower()}")
    if kind in (np.int32, np.int64) and made.dtype.kind == "f":
        made = np.nan_to_num(made).clip(-(2**31), 2**31 - 1)
    build.reals[node.output.index] = Real(name, np.broadcast_to(made, (256,)).astype(kind))


def ordered(build: Builder, node: Node, options: Options) -> None:
    """Compare two int8 tensors, broadcast; of one function of an activation before SELECT."""
    source, order = compared(build, node)
    build.reals[node.output.index] = Real(source, SEVERAL[node.kind](order, 0))


def _source(build: Builder, tensor: FileTensor) -> str | None:
    """Return the activation that it is a function of; None for a constant."""
    if (real := build.reals.get(tensor.index)) is not None:
        if real.quantize:
            raise ThimbleError("of float sums it is not supported, but for QUANTIZE")
        return real.source
    return None if tensor.data else build.source(tensor, ("INT8",)).name


def _values(build: Builder, tensor: FileTensor) -> Values:
    if tensor.index in build.reals:
        return build.reals[tensor.index].values
    if tensor.data:
        if tensor.size != 1:
            raise ThimbleError(f"{tensor.name} has {tensor.size} values; one number is supported")
        return values_of(tensor, tuple(KINDS)).reshape(-1).astype(KINDS[tensor.type])
    return np.arange(-128, 128)


def dequantized(build: Builder, node: Node) -> None:
    """Note the real values of the input's integers."""
    source, given = build.source(node.input(0)), node.input(0)
    if source.dtype.bits != 8:
        raise ThimbleError("a network that is partly float and partly int16 is not supported")
    real = given.scale * (np.arange(-128, 128) - given.zero_point)
    build.reals[node.output.index] = Real(source.name, real.astype(np.float32))


def quantized(build: Builder, node: Node) -> None:
    """Make a table of the real values: AffineQuantize."""
    given, out = build.reals[node.input(0).index], node.output
    if given.quantize:
        return given.quantize(out)
    with np.errstate(all="ignore"):
        steps = given.values.astype(np.float32) / np.float32(out.scale)
    by_table(build, node, given.source, nearest(steps) + out.zero_point)


def ended(build: Builder, tensor: FileTensor) -> None:
    """Store real numbers that the network gives in 16 bits, over the range that they have."""
    require_type(tensor, ("FLOAT32",))
    source, values = _source(build, tensor), _values(build, tensor).astype(np.float64)
    if source is None or not np.isfinite(values).all():
        raise ThimbleError(f"{tensor.name}, an output, has values that are no finite numbers")
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = (high - low) / 65535 or 1.0
    zero_point = round(-32768 - low / scale)
    given = build.tensors[source]
    made = build.fresh(tensor.name, given.shape, "int16", (scale,), zero_point)
    table = np.rint(values / scale).astype(np.int64) + zero_point
    entries = tuple(table.clip(-32768, 32767).tolist())
    build.operators.append(Lookup(f"{made.name}_stored", (source,), made.name, table=entries))
    build.outputs[tensor.index] = made.name


def absolute(build: Builder, node: Node, options: Options) -> None:
    """To any quantization; of real numbers between DEQUANTIZE and QUANTIZE."""
    ratio = node.input(0).scale / node.output.scale
    requant, each = FixedPoint.of([ratio]), np.arange(-128, 128) - node.input(0).zero_point
    if node.input(0).type == "INT16":
        return wide(build, node, requant, -1)
    found = np.abs(each) if ratio == 1 else requant.apply(np.abs(each))
    by_table(build, node, build.source(node.input(0)).name, found + node.output.zero_point)


def rsqrt(build: Builder, node: Node, options: Options) -> None:
    """In tflite-micro's arithmetic; of real numbers between DEQUANTIZE and QUANTIZE. What is below
    0 gives the greatest integer."""
    each = np.arange(-128, 128) - node.input(0).zero_point
    factor = FixedPoint.of([1 / (node.input(0).scale ** 0.5 * node.output.scale)])
    fine = np.rint((1 << 20) / np.sqrt(np.maximum(each, 1))).astype(np.int64)
    (shift,) = factor.shifts
    found = FixedPoint(factor.multipliers, (shift - 20,)).apply(fine) + node.output.zero_point
    by_table(build, node, build.source(node.input(0)).name, np.where(each > 0, found, 127))


def _embedded(build: Builder, node: Node, options: Options) -> None:
    """Rows of a constant, chosen by a function of an activation: a table for each column."""
    order = (0, 1) if node.kind == "GATHER" else (1, 0)
    table, chosen = (node.input(place) for place in order)
    if not table.data or chosen.index not in build.reals or len(table.dims) != 2:
        raise ThimbleError("it chooses by what is computed; from a constant matrix that works")
    if node.kind == "GATHER" and (axis_of(options["axis"], table) or options["batch_dims"]):
        raise ThimbleError("it chooses columns of a constant; rows are supported")
    real, rows = build.reals[chosen.index], values_of(table, ("INT8",))
    at = real.values.astype(np.int64).clip(0, len(rows) - 1)
    held = build.shaped(real.source, (chosen.size, 1))
    source, parts = build.tensors[held], list[str]()
    for number, column in enumerate(rows.T):
        made = build.fresh(f"{node.output.name}_{number}", source.shape, "int8",
                           (table.scale,), table.zero_point)  # fmt: skip
        name, entries = f"{node.name}_{number}", tuple(int(each) for each in column[at])
        build.operators.append(Lookup(name, (held,), made.name, table=entries))
        parts.append(made.name)
    build.become(node.output, build.joined(parts, 1))


OPERATORS = {
    **{kind: Entry(function) for kind in (*unary({}), *SEVERAL) if kind not in OWN},
    **{kind: Entry(ordered) for kind in ORDERS},
    "DIV": Entry(div, "DivOptions", "activation:i8"),
    "GELU": Entry(function, "GeluOptions", "approximate:bool"),
    "ABS": Entry(absolute),
    "RSQRT": Entry(rsqrt),
    "EMBEDDING_LOOKUP": Entry(rule),
}
