"""Slices, splits and nearest neighbours of ONNX, of real numbers and of integers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np

from pipeline.importers import resampling, whole
from pipeline.importers.float_graph import checked_size
from pipeline.importers.layout import Value
from pipeline.importers.moving import chosen
from pipeline.importers.onnx_call import Call, Item, Stored, Table
from pipeline.importers.onnx_file import Array
from pipeline.importers.onnx_shapes import renaming

Held = TypeVar("Held", Value, Array)


def picked(call: Call, x: Held, axis: int, indices: Sequence[int]) -> Held:
    """Return the ``indices`` along ``axis``, of a constant, too."""
    if isinstance(x, Value):
        return chosen(call.builder, x, axis, indices)
    size = x.size // max(1, x.shape[axis]) * len(indices)
    checked_size(call.node.where, (max(1, size),))
    return x.take(np.asarray(indices, np.int64), axis)


def slice_(call: Call, x: Held) -> Held:
    """Limits as Python has them; lists are attributes in old opsets, inputs in new ones."""
    rank = len(x.shape)
    starts, ends = call.integers(1, "starts") or (), call.integers(2, "ends") or ()
    axes = call.integers(3, "axes") or tuple(range(len(starts)))
    steps = call.integers(4, "steps") or (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise call.refuse("starts, ends, axes and steps differ in number")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise call.refuse("a step of 0")
        axis = call.axis(axis, rank)
        x = picked(call, x, axis, range(x.shape[axis])[slice(start, end, step)])
    return x


def split(call: Call) -> list[Item]:
    """Into parts of given sizes, or into as many as there are outputs."""
    found, count = call.item(0), len(call.node.outputs)
    x = found.value if isinstance(found, Stored) else call.x
    axis = call.axis(call.integer("axis", 0), len(x.shape))
    extent = x.shape[axis]
    each = -(-extent // max(1, count))
    sizes = call.integers(1, "split") or tuple(
        min(each, extent - start) for start in range(0, extent, each)
    )
    if len(sizes) != count or min(sizes) < 1 or sum(sizes) != extent:
        raise call.refuse(f"{count} parts {list(sizes)[:8]} of {extent}")
    ends = list(accumulate(sizes))
    parts = [
        chosen(call.builder, x, axis, range(end - size, end))
        for end, size in zip(ends, sizes, strict=True)
    ]
    if isinstance(found, Stored):
        return [Stored(part, found.affine, found.unsigned) for part in parts]
    return list(parts)


def gather(call: Call, x: Held) -> Held:
    """Constant indices along an axis; a single one leaves the axis out."""
    axis: int = call.axis(call.integer("axis", 0), len(x.shape))
    found: Array = call.constant(1).values
    extent = x.shape[axis]
    if found.dtype.kind not in "iu" or not ((-extent <= found) & (found < extent)).all():
        raise call.refuse(f"its indices are not those of an axis of {extent}")
    x = picked(call, x, axis, (found.reshape(-1) % max(1, extent)).tolist())
    return x.reshape((*x.shape[:axis], *found.shape, *x.shape[axis + 1 :]))


def resize(call: Call, x: Value) -> Value:
    """Nearest neighbours, lines and cubic curves between them."""
    how = call.text("coordinate_transformation_mode", "half_pixel")
    scales, sizes = call.optional(2 if call.opset >= 11 else 1), call.integers(3, "sizes")
    plain = not call.integer("antialias", 0) and call.text("keep_aspect_ratio_policy", "stretch")
    if how not in resampling.WAYS or plain != "stretch" or call.node.attributes.get("axes"):
        raise call.refuse(f"with {how}, antialias or a policy: {resampling.WAYS} work, without")
    factors = () if scales is None else scales.floats.reshape(-1).tolist()
    return _resized(call, x, factors, sizes, how if call.opset >= 11 else "asymmetric")


def upsample(call: Call, x: Value) -> Value:
    """Resize of old opsets."""
    given = call.node.attributes.get("scales")
    scales = given if isinstance(given, tuple) else call.constant(1).floats.reshape(-1).tolist()
    return _resized(call, x, scales, None, "asymmetric")


def _resized(
    call: Call, x: Value, scales: Sequence[float], sizes: tuple[int, ...] | None, how: str
) -> Value:
    mode, rank = call.text("mode", "nearest"), len(x.shape)
    if mode not in ("linear", "cubic", "nearest") or call.integer("exclude_outside", 0):
        raise call.refuse(f"mode {mode}: nearest, linear and cubic are supported")
    if sizes is None and (len(scales) != rank or not all(0 < s < 1 << 16 for s in scales)):
        raise call.refuse(f"scales {list(scales)[:8]} of {list(x.shape)}")
    if sizes is not None and (len(sizes) != rank or min(sizes, default=0) < 1):
        raise call.refuse(f"sizes {list(sizes)[:8]} of {list(x.shape)}")
    shape = sizes or tuple(int(n * s) for n, s in zip(x.shape, scales, strict=True))
    rounding = call.text("nearest_mode", "round_prefer_floor" if call.opset >= 11 else "floor")
    factors = scales[2:] if sizes is None and rank == 4 else ()
    slope = call.number("cubic_coeff_a", -0.75)
    return whole.resampled(
        call.builder, x, shape, mode, how, rounding=rounding, scales=factors, slope=slope
    )


OPERATORS: Table = {
    "Slice": renaming(slice_),
    "Gather": renaming(gather),
    "Split": split,
    "Resize": renaming(resize),
    "Upsample": renaming(upsample),
}
