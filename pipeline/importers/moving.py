"""What PyTorch and ONNX say about where elements go: chosen, repeated, mirrored, resized.

Functions take and give ``Value``s in the source's shapes, (1, c, h, w) for images.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np

from pipeline.importers import float_nodes as nodes
from pipeline.importers.builder import SIGNAL_AXES, Builder, our_axis
from pipeline.importers.float_graph import Shape, checked_size
from pipeline.importers.float_nodes import Pair
from pipeline.importers.layout import Index, Value, ours, usual
from pipeline.importers.moves import flanked, moved, placed, taken

Mode = Literal["constant", "edge", "reflect", "wrap"]


def chosen(build: Builder, x: Value, axis: int, indices: Sequence[int]) -> Value:
    """Return the ``indices`` along ``axis`` of the source, not the batch's."""
    shape, extent = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :]), x.shape[axis]
    if list(indices) == list(range(extent)):
        return x
    if axis == 0 and extent > 1 and len(indices):  # no batch
        return gathered(build, x.tensor, x.index[list(indices)])
    if axis == 0:
        raise build.refuse(f"takes a part of the batch, axis 0 of {list(x.shape)}: it is 1 here")
    if not len(indices):
        raise build.refuse(f"takes nothing along axis {axis} of {list(x.shape)}")
    checked_size(build.here, shape)
    if images := build.images(x):
        return chosen(build, images[0], SIGNAL_AXES[axis], indices).reshape(shape)
    if len(x.shape) > 4:
        seen: Shape = flanked(x.shape, axis)
        tensor, here = build.ordered(x, np.arange(x.index.size).reshape(x.shape), seen), 1
    else:
        seen, tensor, here = ours(x.shape), build.usual(x), our_axis(len(x.shape), axis)
    lists: list[Sequence[int]] = [range(n) for n in seen]
    lists[here] = indices
    return Value(build.shaped(taken(build, tensor, seen, lists), ours(shape)), usual(shape))


def gathered(build: Builder, tensor: str, index: Index) -> Value:
    """Return the value whose elements are those of ``tensor`` at the places ``index``."""
    checked_size(build.here, index.shape)
    places = np.empty(index.size, np.int64)
    places[usual(index.shape).reshape(-1)] = index.reshape(-1)
    if (moves := moved(places, prod(build.shapes[tensor]))) is None:
        raise build.refuse(f"elements of {list(index.shape)} come from places at uneven distances")
    return Value(placed(build, tensor, moves, ours(index.shape)), usual(index.shape))


def tiled(build: Builder, x: Value, counts: Sequence[int]) -> Value:
    """Repeat it so often along each axis; there may be more counts than axes."""
    rank = max(len(counts), len(x.shape))
    counts = (1,) * (rank - len(counts)) + tuple(counts)
    x = x.reshape((1,) * (rank - len(x.shape)) + x.shape)
    checked_size(build.here, tuple(n * count for n, count in zip(x.shape, counts, strict=True)))
    return gathered(build, x.tensor, np.tile(x.index, counts)) if max(counts) > 1 else x


def expanded(build: Builder, x: Value, shape: Shape) -> Value:
    """``x`` broadcast to ``shape`` and its own."""
    try:
        shape = checked_size(build.here, np.broadcast_shapes(x.shape, shape))
    except ValueError:
        raise build.refuse(f"{list(x.shape)} does not broadcast to {list(shape)[:8]}") from None
    x = x.reshape((1,) * (len(shape) - len(x.shape)) + x.shape)
    if x.shape == shape:
        return x
    if len(shape) > 4 or shape[0] != 1:
        return gathered(build, x.tensor, np.broadcast_to(x.index, shape))
    pairs = zip(ours(x.shape), ours(shape), strict=True)
    lists = [range(n) if n == wanted else [0] * wanted for n, wanted in pairs]
    return Value(taken(build, build.usual(x), ours(x.shape), lists), usual(shape))


def padded(
    build: Builder, x: Value, padding: Sequence[Pair], mode: Mode = "constant", value: float = 0.0
) -> Value:
    """(before, after) for each axis of the source; less than 0 cuts off."""
    for axis, (extent, pair) in enumerate(zip(x.shape, padding, strict=True)):
        start, stop = (max(0, -each) for each in pair)
        x = chosen(build, x, axis, range(start, extent - stop))
    around = [(max(0, before), max(0, after)) for before, after in padding]
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, around, strict=True))
    if shape == x.shape:
        return x
    checked_size(build.here, shape)
    if around[0] != (0, 0):
        raise build.refuse("padding of the batch axis is not supported")
    if mode != "constant":
        for axis, pair in enumerate(around):
            if mode == "reflect" and max(pair) >= x.shape[axis] > 1:
                raise build.refuse(f"reflects {max(pair)} of {x.shape[axis]} elements")
            x = chosen(build, x, axis, np.pad(np.arange(x.shape[axis]), pair, mode=mode).tolist())
        return x
    if images := build.images(x):
        wide = padded(build, images[0], [*around[:2], (0, 0), around[2]], value=value)
        return wide.reshape(shape)
    here = [(0, 0)] * (len(shape) - 1)
    for axis in range(1, len(shape)):
        here[our_axis(len(shape), axis)] = around[axis]
    return build.made(nodes.Padded, [build.usual(x)], shape, padding=tuple(here), value=value)
