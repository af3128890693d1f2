"""Reshaping, transposing, padding, concatenation and softmax of ONNX, and what does nothing.

What only renames elements works on integers, too: models may quantize before or after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, prod
from typing import get_args

import numpy as np
import numpy.typing as npt

from pipeline.importers import float_nodes as nodes
from pipeline.importers import moving, whole
from pipeline.importers.float_graph import Affine, Shape
from pipeline.importers.float_nodes import Floats
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.moving import Mode
from pipeline.importers.onnx_call import SHIFT, Call, Constant, Item, Stored, Table, scalar


def renaming(rename: Callable[[Call, Value], Value]) -> Callable[[Call], Item]:
    """An operator on a real or a stored activation, whose elements stay what they are."""

    def made(call: Call) -> Item:
        found = call.item(0)
        if isinstance(found, Stored):
            return Stored(rename(call, found.value), found.affine, found.unsigned)
        return rename(call, call.x)

    return made


def new_shape(call: Call, old: Shape, wanted: tuple[int, ...]) -> Shape:
    """Reshape's rules: 0 copies, -1 is what is left."""
    if wanted.count(-1) > 1 or len(wanted) > 8:
        raise call.refuse(f"reshapes to {list(wanted)[:8]}")
    keeps_zero = call.integer("allowzero", 0)
    shape = [
        old[axis] if extent == 0 and not keeps_zero and axis < len(old) else extent
        for axis, extent in enumerate(wanted)
    ]
    if -1 in shape:
        rest = prod(extent for extent in shape if extent != -1)
        shape[shape.index(-1)] = prod(old) // rest if rest else 0
    if any(extent < 1 for extent in shape) or prod(shape) != prod(old):
        raise call.refuse(f"{list(old)} cannot be reshaped to {list(wanted)[:8]}")
    return tuple(shape)


def reshape(call: Call, x: Value) -> Value:
    wanted = call.integers(1, "shape")
    if wanted is None:
        raise call.refuse("has no shape")
    return x.reshape(new_shape(call, x.shape, wanted))


def flatten(call: Call, x: Value) -> Value:
    axis = call.integer("axis", 1)
    if not -len(x.shape) <= axis <= len(x.shape):
        raise call.refuse(f"axis {axis} of {len(x.shape)}")
    axis = axis % len(x.shape) if axis < 0 else axis
    return x.reshape((prod(x.shape[:axis]), prod(x.shape[axis:])))


def squeeze(call: Call, x: Value) -> Value:
    axes = call.integers(1, "axes")
    rank = len(x.shape)
    gone = (
        {axis for axis, extent in enumerate(x.shape) if extent == 1}
        if axes is None
        else {call.axis(axis, rank) for axis in axes}
    )
    if any(x.shape[axis] != 1 for axis in gone):
        raise call.refuse(f"axes {sorted(gone)} of {list(x.shape)} are not all 1")
    return x.reshape(tuple(n for axis, n in enumerate(x.shape) if axis not in gone))


def unsqueeze(call: Call, x: Value) -> Value:
    axes = call.integers(1, "axes") or ()
    rank = len(x.shape) + len(axes)
    new = {call.axis(axis, rank) for axis in axes}
    if len(new) != len(axes) or rank > 8:
        raise call.refuse(f"axes {list(axes)[:8]} of {rank}")
    rest = iter(x.shape)
    return x.reshape(tuple(1 if axis in new else next(rest) for axis in range(rank)))


def transpose(call: Call, x: Value) -> Value:
    rank = len(x.shape)
    axes = call.many("perm", tuple(reversed(range(rank))))
    if sorted(axes) != list(range(rank)):
        raise call.refuse(f"perm {list(axes)[:8]} of {rank} axes")
    return x.transpose(axes)


def padded(call: Call, x: Value, real: Callable[[float], float] = float) -> Value:
    """``real``: of the number that is padded with. Limits are attributes in old opsets, inputs in
    new ones."""
    mode, value = call.text("mode", "constant"), call.number("value", scalar(call, 2, 0.0))
    if mode not in get_args(Mode) or not isfinite(value):
        raise call.refuse(f"padding by {mode} {value:g}: {', '.join(get_args(Mode))} are supported")
    widths, rank = call.integers(1, "pads" if call.opset > 1 else "paddings") or (), len(x.shape)
    axes = call.optional(3)
    chosen = range(rank)
    if axes is not None:
        listed = axes.values.reshape(-1)[:8]
        chosen = [call.axis(int(axis), rank) for axis in listed]  # type: ignore[assignment]
    if len(widths) != 2 * len(chosen):
        raise call.refuse(f"pads {list(widths)[:16]}: {2 * len(chosen)} numbers are expected")
    around = [(0, 0)] * rank
    for index, axis in enumerate(chosen):
        around[axis] = (widths[index], widths[index + len(chosen)])
    return moving.padded(call.builder, x, around, mode, real(value))  # type: ignore[arg-type]


def concatenated(call: Call, parts: Sequence[Value | Floats]) -> Value:
    """Along the attribute ``axis``."""
    if not parts:
        raise call.refuse("has no inputs")
    axis = call.axis(call.integer("axis", 1), len(parts[0].shape))
    return whole.joined(call.builder, parts, axis)


def softmax_of(call: Call, x: Value, opset: int) -> Value:
    """Over one axis; before opset 13 over all from ``axis`` on."""
    rank = len(x.shape)
    axis = call.axis(call.integer("axis", -1 if opset >= 13 else 1), rank)
    if opset < 13 and prod(x.shape[axis + 1 :]) != 1:
        raise call.refuse(f"softmax over several axes of {list(x.shape)} is not supported")
    kind = nodes.LogSoftmaxOver if call.node.operator == "LogSoftmax" else nodes.SoftmaxOver
    return call.builder.softmax(x, axis, kind)


def depth_to_space(call: Call, x: Value) -> Value:
    """Channels become blocks of pixels: the outer ones (DCR), or the inner ones."""
    size, channels, height, width = block(call, x)
    if channels % (size * size):
        raise call.refuse(f"{channels} channels in blocks of {size}x{size} pixels")
    few = channels // (size * size)
    if call.text("mode", "DCR") == "DCR":
        apart = x.reshape((1, size, size, few, height, width)).transpose((0, 3, 4, 1, 5, 2))
    else:
        apart = x.reshape((1, few, size, size, height, width)).transpose((0, 1, 4, 2, 5, 3))
    return apart.reshape((1, few, height * size, width * size))


def space_to_depth(call: Call, x: Value) -> Value:
    size, channels, height, width = block(call, x)
    if height % size or width % size:
        raise call.refuse(f"{height}x{width} pixels in blocks of {size}")
    low, narrow = height // size, width // size
    apart = x.reshape((1, channels, low, size, narrow, size)).transpose((0, 3, 5, 1, 2, 4))
    return apart.reshape((1, channels * size * size, low, narrow))


def block(call: Call, x: Value) -> tuple[int, int, int, int]:
    """Return the size of a block, channels, height and width."""
    size = call.integer("blocksize", 0)
    if len(x.shape) != 4 or x.shape[0] != 1 or size < 1:
        raise call.refuse(f"blocks of {size} of {list(x.shape)}")
    _, channels, height, width = x.shape
    return size, channels, height, width


def tile(call: Call, x: Value) -> Value:
    counts = call.integers(1, "repeats") or ()
    if call.opset < 6:  # so many along one axis
        axis, axes = call.axis(int(scalar(call, 2, 0)), len(x.shape)), range(len(x.shape))
        counts = tuple(counts[0] if each == axis else 1 for each in axes)
    if len(counts) != len(x.shape) or min(counts) < 1:
        raise call.refuse(f"repeats {list(counts)[:8]} of {list(x.shape)}")
    return moving.tiled(call.builder, x, counts)


def expand(call: Call, x: Value) -> Value:
    return moving.expanded(call.builder, x, call.integers(1, "shape") or ())


def cast(call: Call) -> Value:
    """Between float types; of an input of integers, which are real numbers then. To integers by
    leaving out what is behind the point."""
    to, found = call.integer("to", 1), call.item(0)
    if to not in (1, 10, 11, 16):  # float, float16, double, bfloat16
        body = Composed.of("not_equal", 0.0) if to == 9 else Composed.of("trunc")
        return call.builder.function(call.x, body)
    if not isinstance(found, Stored):
        return call.x
    if found.affine is not None:
        raise call.refuse("casts quantized integers: DequantizeLinear makes real numbers of them")
    unit = Affine(1.0, -SHIFT if found.unsigned else 0)
    call.builder.given.setdefault(found.value.tensor, unit)
    return found.value


def shape_of(call: Call) -> Item:
    """Shape: it is known here."""
    found = call.item(0)
    value = found.value if isinstance(found, Stored) else call.x
    return Constant(axes_of(call, value.shape))


def axes_of(call: Call, shape: Shape) -> npt.NDArray[np.int64]:
    """Return the extents that Shape asks for; newer opsets may ask for some."""
    end = call.node.attributes.get("end")
    return np.array(shape, dtype=np.int64)[call.integer("start", 0) : end]


def size_of(call: Call) -> Item:
    shape = shape_of(call)
    assert isinstance(shape, Constant)
    return Constant(np.array(prod(shape.values.tolist()), dtype=np.int64))


RENAMES: Mapping[str, Callable[[Call, Value], Value]] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Identity": lambda call, x: x,
    "Dropout": lambda call, x: x,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
OPERATORS: Table = {
    **{name: renaming(rule) for name, rule in RENAMES.items()},
    "Tile": renaming(tile),
    "Expand": renaming(expand),
    "Pad": lambda call: padded(call, call.x),
    "Concat": lambda call: concatenated(call, call.reals),
    **dict.fromkeys(("Softmax", "LogSoftmax"), lambda call: softmax_of(call, call.x, call.opset)),
    "Cast": cast,
    "Shape": shape_of,
    "Size": size_of,
}
