"""Operators of ONNX on the integers themselves, as onnxruntime's QOperator format has them beside
those with QLinear in their names. Where a number is given, it is a stored one: a uint8's, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from pipeline.importers.float_graph import Affine
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import Call, Item, Stored, Table, scalar
from pipeline.importers.onnx_functions import OPERATORS as FUNCTIONS
from pipeline.importers.onnx_pooling import OPERATORS as POOLS
from pipeline.importers.onnx_pooling import maximum
from pipeline.importers.onnx_shapes import OPERATORS as SHAPES
from pipeline.importers.onnx_shapes import concatenated, padded


def either(
    reals: Callable[[Call], Item | list[Item]], integers: Callable[[Call, Stored], Item]
) -> Callable[[Call], Item | list[Item]]:
    """``reals`` of real activations, ``integers`` where the first input is stored ones."""

    def made(call: Call) -> Item | list[Item]:
        found = call.item(0)
        return integers(call, found) if isinstance(found, Stored) else reals(call)

    return made


def known(call: Call, x: Stored) -> Affine:
    """Return the quantization of ``x``; that of an input of integers is still to come."""
    if x.affine is None:
        raise call.refuse("its input's quantization is not known yet: put DequantizeLinear before")
    return x.affine


def kept(call: Call, x: Stored, result: Value) -> Stored:
    """``result``, whose integers mean what those of ``x`` do."""
    return Stored(call.builder.mark(result, known(call, x)), x.affine, x.unsigned)


def concat_integers(call: Call, x: Stored) -> Item:
    parts = []
    for index in range(len(call.items)):
        part = call.item(index)
        if not isinstance(part, Stored) or (part.affine, part.unsigned) != (x.affine, x.unsigned):
            raise call.refuse(
                "its integers have different scales or zero points; QLinearConcat joins such"
            )
        parts.append(part.value)
    return kept(call, x, concatenated(call, parts))


def limited(call: Call, x: Stored, low: float, high: float) -> Item:
    """``x`` between two stored integers."""
    ends = (real(call, x, each) for each in (low, high))
    return kept(call, x, call.builder.function(x.value, Composed.of("clip", *ends)))


def real(call: Call, x: Stored, number: float) -> float:
    """Return the real value of a stored integer."""
    affine = known(call, x)
    return affine.scale * (number - x.zero_point(affine))


OPERATORS: Table = {
    "MaxPool": either(POOLS["MaxPool"], lambda call, x: kept(call, x, maximum(call, x.value))),
    "Pad": either(
        SHAPES["Pad"], lambda call, x: kept(call, x, padded(call, x.value, partial(real, call, x)))
    ),
    "Concat": either(SHAPES["Concat"], concat_integers),
    "Clip": either(
        FUNCTIONS["Clip"],
        lambda call, x: limited(call, x, scalar(call, 1, -inf), scalar(call, 2, inf)),
    ),
    "Relu": either(FUNCTIONS["Relu"], lambda call, x: limited(call, x, 0, inf)),
}
