"""Entries of a table of operators, and what several operators' readers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor, inf
from typing import Any

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.Padding import Padding

from pipeline.errors import ThimbleError
from pipeline.graph.operator import Clip
from pipeline.graph.tensor import DType
from pipeline.importers.tflite_builder import Builder
from pipeline.importers.tflite_model import MOST_ELEMENTS, FileTensor, Node

Options = Mapping[str, Any]

LIMITS = {
    ActivationFunctionType.NONE: (-inf, inf),
    ActivationFunctionType.RELU: (0.0, inf),
    ActivationFunctionType.RELU6: (0.0, 6.0),
    ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
}
"""The real values that fused activations let through."""


@dataclass(frozen=True)
class Entry:
    """Reader of the operators of one kind.

    Attributes:
        build: adds the operator to the graph; its first line of documentation is shown to users.
        options: the schema's table of options, "" for none.
        fields: that table's fields in the schema's order, as ``name:type`` or
            ``name:type=default``.
        reads: how many leading inputs are data or constants that ``build`` asks for; others, such
            as RESHAPE's computed shape, need not exist. 0 for all.
    """

    build: Callable[[Builder, Node, Options], None]
    options: str = ""
    fields: str = ""
    reads: int = 0

    def values(self, node: Node) -> Options:
        """Return the node's options; the schema's defaults where the file leaves them out."""
        given = node.options if node.options_type == self.options else None
        found: dict[str, Any] = {}
        for number, item in enumerate(self.fields.split()):
            name, _, kind = item.partition(":")
            kind, _, default = kind.partition("=")
            value = int(default or 0)
            found[name] = value if given is None else given.scalar(number, kind, value)
        return {**found, **node.given}


def fused(options: Options, target: FileTensor) -> Clip:
    """Return the range that the fused activation lets through, in stored integers of ``target``.

    TFLite's CalculateActivationRangeQuantized: bounds are divided by the scale in float32 and
    rounded half away from zero.
    """
    if (number := options.get("activation", 0)) not in LIMITS:
        raise ThimbleError(f"its fused activation {number} is not supported")
    dtype, (low, high) = DType.parse(target.type.lower()), LIMITS[number]
    if low == -inf:
        return None
    most = dtype.maximum if high == inf else min(dtype.maximum, stored(high, target))
    return max(dtype.minimum, stored(low, target)), most


def stored(value: float, target: FileTensor) -> int:
    """``value`` as ``target`` stores it, not limited to its type."""
    with np.errstate(all="ignore"):
        return target.zero_point + rounded(float(np.float32(value) / np.float32(target.scale)))


def rounded(value: float) -> int:
    """Round to nearest, halves away from zero, a value that fits 32 bits."""
    if not abs(value) < 1 << 31:
        raise ThimbleError(f"a bound of {value} steps of the scale does not fit 32 bits")
    return floor(value + 0.5) if value >= 0 else -floor(0.5 - value)


def positive(options: Options, first: str, second: str) -> tuple[int, int]:
    """Two options that have to be at least 1, such as strides."""
    for name in (first, second):
        if options[name] < 1:
            raise ThimbleError(f"its {name} is {options[name]}, at least 1 is needed")
    return options[first], options[second]


def padding(
    options: Options,
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
) -> tuple[int, int, int, int]:
    """Count (top, bottom, left, right) of SAME or VALID, where an odd pixel goes to the bottom and
    right, or as ``around`` says."""
    around = options.get("around")
    if around is None and options["padding"] not in (Padding.SAME, Padding.VALID):
        raise ThimbleError(f"its padding is number {options['padding']}, expected SAME or VALID")
    found: list[int] = []
    elements = shape[-1]
    for axis, (extent, k, s, d) in enumerate(zip(shape, kernel, stride, dilation, strict=False)):
        total = 0
        if options["padding"] == Padding.SAME:
            total = max((-(-extent // s) - 1) * s + (k - 1) * d + 1 - extent, 0)
        before, after = around[axis] if around else (total // 2, total - total // 2)
        elements *= extent + before + after
        found += [before, after]
    if elements > MOST_ELEMENTS:
        raise ThimbleError(f"its padded input has {elements:,} elements, over {MOST_ELEMENTS:,}")
    return found[0], found[1], found[2], found[3]


def axis_of(axis: int, tensor: FileTensor) -> int:
    """``axis``, counted from the first, if ``tensor`` has it."""
    rank = len(tensor.dims)
    if not -rank <= axis < rank:
        raise ThimbleError(f"its axis {axis} does not fit {tensor.name} of {list(tensor.dims)}")
    return axis % rank


def image(shape: tuple[int, ...], tensor: FileTensor) -> None:
    """Raises ThimbleError unless ``shape`` is (h, w, c)."""
    if len(tensor.dims) != 4 or tensor.dims[0] != 1 or len(shape) != 3:
        raise ThimbleError(
            f"{tensor.name} has the shape {list(tensor.dims)}, expected one image [1, h, w, c]"
        )
