"""Sparse constants of .tflite files: what is not zero, and where it lies.

Source of the format: TensorFlow's schema.fbs (SparsityParameters) and, of its meaning, LiteRT's
sparsity/format_converter.cc.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.importers.tflite_flatbuffer import Table

MOST = 1 << 24
INDICES = {1: "i4", 2: "u2", 3: "u1"}
"""Types of the lists, by their numbers in the schema."""


def dense(sparsity: Table, stored: memoryview, dims: tuple[int, ...], item: int) -> memoryview:
    """Return all bytes of a constant of ``dims``, of ``item`` bytes each."""
    order, blocks = (sparsity.numbers(field, "i4", 16) for field in (0, 1))
    levels = [sparsity.item(2, number) for number in range(sparsity.count(2))]
    if len(order) != len(levels) or len(order) != len(dims) + len(blocks):
        raise ThimbleError("the file is damaged: a sparse constant has other axes than its order")
    above, found = np.zeros(1, np.int64), list[NDArray[np.int64]]()
    for level in levels:
        if level.scalar(0, "i8"):  # those of each entry of the level above are listed
            segments, listed = (_list(level, field) for field in (2, 4))
            counts = np.diff(segments)[above]
            starts = segments[above] - (counts.cumsum() - counts)
            below = np.arange(counts.sum()) + starts.repeat(counts)
            index = listed[below]
        else:
            extent = level.scalar(1, "i32")
            if extent * above.size > MOST:
                raise ThimbleError("the file is damaged: a sparse constant is too large")
            counts, index = np.array(extent), np.tile(np.arange(extent), above.size)
            below = above.repeat(extent) * extent + index
        found = [*(each.repeat(counts) for each in found), index]
        above = below
    at = dict(zip(order, found, strict=True))
    for number, axis in enumerate(blocks):
        size = levels[order.index(len(dims) + number)].scalar(1, "i32")
        at[axis] = at[axis] * size + at[len(dims) + number]
    values = np.frombuffer(stored, np.dtype(f"V{item}"))
    result = np.zeros(dims, values.dtype)
    result[tuple(at[axis] for axis in range(len(dims)))] = values
    return memoryview(result.tobytes())


def _list(level: Table, field: int) -> NDArray[np.int64]:
    """Read a union of lists, whose type is the field before."""
    table, kind = level.table(field + 1), INDICES.get(level.scalar(field, "u8"))
    if table is None or kind is None:
        raise ThimbleError("the file is damaged: a sparse constant has no list of places")
    return np.array(table.numbers(0, kind, MOST), np.int64)
