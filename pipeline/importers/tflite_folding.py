"""What a .tflite file computes of shapes and constants alone, and shapes that follow from it.

Converters leave such arithmetic to run time where a batch's size is open; here it is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.importers.tflite_builder import values_of
from pipeline.importers.tflite_model import FileModel, Node
from pipeline.importers.tflite_moves import gather
from pipeline.importers.tflite_operator import Entry, Options
from pipeline.importers.tflite_reals import SEVERAL, unary
from pipeline.importers.tflite_slices import numbers, slice_, strided_slice

PLAIN = ("INT32", "INT64", "FLOAT32")
TAKEN = {"STRIDED_SLICE": strided_slice, "SLICE": slice_, "GATHER": gather}
RENAMED = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "CAST")
FOLDED = ("SHAPE", "PACK", "CONCATENATION", "REDUCE_PROD", *TAKEN, *RENAMED, *SEVERAL)
ALIKE = ("SOFTMAX", "LOG_SOFTMAX", "QUANTIZE", "DEQUANTIZE", *unary({}))
"""Operators whose output has the shape of their input."""


def fold(model: FileModel, entries: Mapping[str, Entry]) -> None:
    """Let ``model`` hold what is computed of shapes and lists of numbers alone, and settle shapes
    that the file leaves open; what cannot be is left as it is."""
    for index in range(model.operators):
        kind, _, makes = model.operator(index)
        if len(makes) == 1:
            with suppress(ThimbleError, ArithmeticError, IndexError, TypeError, ValueError):
                if model.is_open(makes[0]):
                    model.settle(makes[0], _shape(model, index))
                if kind in FOLDED and len(model.tensor(makes[0]).dims) < 2:
                    node, entry = model.node(index), entries.get(kind)
                    if node.output.type in PLAIN:
                        model.hold(makes[0], _computed(node, entry.values(node) if entry else {}))


def _computed(node: Node, options: Options) -> NDArray[Any]:
    if node.kind == "SHAPE":
        return np.array(node.input(0).dims)
    given = [values_of(each, PLAIN) for each in node.inputs if each is not None]
    if node.kind in TAKEN:
        return np.asarray(given[0][np.ix_(*TAKEN[node.kind](node, options)[0])])
    if node.kind in ("PACK", "CONCATENATION"):
        return np.concatenate([each.reshape(-1) for each in given])
    if node.kind == "REDUCE_PROD":
        return np.array(np.prod(given[0]))
    return np.asarray(given[0] if node.kind in RENAMED else SEVERAL[node.kind](*given))


def _shape(model: FileModel, index: int) -> tuple[int, ...]:
    """The shape of what an operator makes, where the file leaves it open."""
    kind, reads, _ = model.operator(index)
    first = model.tensor(reads[0])
    if kind == "RESHAPE":
        dims = numbers(model.tensor(reads[1]))
        rest = first.size // max(1, -prod(dims))
        return tuple(rest if extent == -1 else extent for extent in dims)
    every = [model.tensor(each).dims for each in reads]
    if kind == "CONCATENATION" and len({len(dims) for dims in every}) == 1:
        return tuple(sum(e) if len(set(e)) > 1 else e[0] for e in zip(*every, strict=True))
    if kind not in ALIKE:
        raise ThimbleError("its shape does not follow")
    return first.dims
