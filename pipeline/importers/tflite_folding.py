"""What a .tflite file computes of shapes and constants alone, and shapes that follow from it.

Converters leave such arithmetic to run time where a batch's size is open; here it is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tflite.Padding import Padding

from pipeline.errors import ThimbleError
from pipeline.importers.tflite_builder import values_of
from pipeline.importers.tflite_model import FileModel, FileTensor, Node
from pipeline.importers.tflite_moves import gather
from pipeline.importers.tflite_operator import Entry, Options
from pipeline.importers.tflite_products import OPERATORS as CONVOLUTIONS
from pipeline.importers.tflite_reals import SEVERAL, unary
from pipeline.importers.tflite_slices import INDICES, numbers, slice_, strided_slice

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
            with suppress(ThimbleError, ArithmeticError, LookupError, TypeError, ValueError):
                if model.is_open(makes[0]):
                    model.settle(makes[0], _shape(model, index))
                if kind == "DENSIFY":  # a sparse constant is read whole
                    model.hold(makes[0], _plain(model.node(index).input(0)))
                if kind == "BATCH_TO_SPACE_ND":
                    model.merged[index] = _dilated(model, index)
                if kind in FOLDED and len(model.tensor(makes[0]).dims) < 2:
                    node, entry = model.node(index), entries.get(kind)
                    if node.output.type in PLAIN:
                        model.hold(makes[0], _computed(node, entry.values(node) if entry else {}))


def _dilated(model: FileModel, index: int) -> Node:
    """SPACE_TO_BATCH_ND, a convolution and BATCH_TO_SPACE_ND, as TensorFlow had convolutions of
    blocks: one whose taps are so far apart."""
    made = {out: n for n in range(index) for out in model.operator(n)[2]}
    last = model.node(index)
    middle = model.node(made[last.input(0).index])
    first = model.node(made[middle.input(0).index])
    given, target = first.input(0), last.output
    if first.kind != "SPACE_TO_BATCH_ND" or middle.kind not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        raise ThimbleError("it is around no convolution")
    size, pads, cut = numbers(first.input(1), 2), first.input(2), last.input(2)
    around = values_of(pads, INDICES) - values_of(cut, INDICES)
    options = CONVOLUTIONS[middle.kind].values(middle)
    plain = {options["stride_h"], options["stride_w"], options["dilation_h"], options["dilation_w"]}
    held = {(each.scales, each.zero_points) for each in (given, middle.input(0))}
    made_as = {(each.scales, each.zero_points) for each in (target, middle.output)}
    alike = numbers(last.input(1), 2) == size and len(held) == len(made_as) == 1
    inside = around.shape == (2, 2) and around.min() >= 0
    if not alike or plain != {1} or options["padding"] != Padding.VALID or not inside:
        raise ThimbleError("its blocks, strides or quantizations do not fit")
    apart = {"dilation_h": size[0], "dilation_w": size[1], "around": around.tolist()}
    return replace(middle, inputs=(given, *middle.inputs[1:]), outputs=(target,), given=apart)


def _plain(tensor: FileTensor) -> NDArray[Any]:
    """Read a constant of whatever type."""
    return np.frombuffer(tensor.data, tensor.type.lower()).reshape(tensor.dims)


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
    """Return the shape of what an operator makes, where the file leaves it open."""
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
