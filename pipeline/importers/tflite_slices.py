"""Operators that choose elements of a tensor and put them elsewhere: slices, parts, transpositions,
neighbours.

Source of the rules: tflite-micro's strided_slice_logic.h, split.cc, transpose.h,
resize_nearest_neighbor.h and resize_bilinear.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph.operators.rearrange import Rearrange
from pipeline.graph.operators.resize import ONE_BITS, Resize
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.importers.resampling import banded, spread
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, axis_of, image
from pipeline.importers.tflite_pooling import same_quantization
from pipeline.importers.tflite_shapes import reshape

INDICES = ("INT32", "INT64")


def slice_(build: Builder, node: Node, options: Options) -> None:
    """From any start, of any size; start and size are constants."""
    _part(build, node, node.input(0), node.output, *sliced(node, options))


def strided_slice(build: Builder, node: Node, options: Options) -> None:
    """With constant limits, steps of 1 or more, and no ellipsis or new axis."""
    _part(build, node, node.input(0), node.output, *sliced(node, options))


def sliced(node: Node, options: Options) -> tuple[list[int], list[int], list[int]]:
    """Return start, count and step along each axis of the file's shape."""
    dims = node.input(0).dims
    begins = numbers(node.input(1), len(dims))
    ends = numbers(node.input(2), len(dims))
    if node.kind == "SLICE":
        whole = zip(dims, begins, ends, strict=True)
        counts = [extent - start if size == -1 else size for extent, start, size in whole]
        return begins, counts, [1] * len(dims)
    steps = numbers(node.input(3), len(dims))
    if options["ellipsis_mask"] or options["new_axis_mask"]:
        raise ThimbleError("its ellipsis or new axis is not supported")
    if min(steps) < 1:
        raise ThimbleError(f"its steps {steps} are not all 1 or more")
    starts, counts = [], []
    for axis, extent in enumerate(dims):
        bit = 1 << axis
        start = 0 if options["begin_mask"] & bit else _clamped(begins[axis], extent)
        stop = extent if options["end_mask"] & bit else _clamped(ends[axis], extent)
        if options["offset"] and not options["end_mask"] & bit:
            stop = _clamped(start + ends[axis], extent)
        if options["shrink_axis_mask"] & bit:
            stop = start + 1
        starts.append(start)
        counts.append(-(-(stop - start) // steps[axis]))
    return starts, counts, steps


def split(build: Builder, node: Node, options: Options) -> None:
    """Into equal parts along any axis but the batch's."""
    _parts(build, node, *parts(node))


def split_v(build: Builder, node: Node, options: Options) -> None:
    """Into parts of given sizes along any axis but the batch's."""
    _parts(build, node, *parts(node))


def parts(node: Node) -> tuple[FileTensor, int, list[int]]:
    """Return what is split, along which axis, and the sizes."""
    count = len(node.outputs)
    if node.kind == "SPLIT":
        given = node.input(1)
        axis = axis_of(numbers(node.input(0), 1)[0], given)
        size, left = divmod(given.dims[axis], count)
        if left:
            raise ThimbleError(f"{given.dims[axis]} entries do not make {count} parts")
        return given, axis, [size] * count
    given = node.input(0)
    axis = axis_of(numbers(node.input(2), 1)[0], given)
    sizes = numbers(node.input(1), count)
    rest = given.dims[axis] - sum(size for size in sizes if size != -1)
    return given, axis, [rest if size == -1 else size for size in sizes]


def unpack(build: Builder, node: Node, options: Options) -> None:
    """Along any axis but the batch's."""
    given = node.input(0)
    _parts(build, node, given, axis_of(options["axis"], given), [1] * len(node.outputs))


def transpose(build: Builder, node: Node, options: Options) -> None:
    """In any order of up to three axes of more than one entry."""
    given = node.input(0)
    order = numbers(node.input(1), len(given.dims))
    if sorted(order) != list(range(len(given.dims))):
        raise ThimbleError(f"its order {order} does not fit {given.name} of {list(given.dims)}")
    long = [axis for axis, extent in enumerate(given.dims) if extent > 1]
    kept = [axis for axis in order if axis in long]
    if kept == long:
        return reshape(build, node, options)
    if len(long) > 3:
        raise ThimbleError(f"it brings four axes of {list(given.dims)} into the order {order}")
    shape = tuple(given.dims[axis] for axis in long)
    axes = tuple(kept.index(axis) for axis in long)
    _emit(
        build, node, given, node.output, shape, tuple(given.dims[axis] for axis in kept), axes=axes
    )


def resize(build: Builder, node: Node, options: Options) -> None:
    """To any height and width; half-pixel centers, aligned corners or neither."""
    given = node.input(0)
    source = build.source(given)
    image(source.shape, given)
    sizes = numbers(node.input(1), 2)
    if tuple(sizes) != node.output.dims[1:3]:
        raise ThimbleError(f"its size {sizes} is not that of {node.output.name}")
    if node.kind == "RESIZE_BILINEAR":
        weights = [_linear(*pair, options) for pair in zip(source.shape, sizes, strict=False)]
        return _resized(build, node, source, weights)
    starts, steps, repeats = [0, 0, 0], [1, 1, 1], [1, 1, 1]
    weights = []
    for axis, (extent, size) in enumerate(zip(source.shape, sizes, strict=False)):
        steps[axis], repeats[axis] = max(1, extent // size), max(1, size // extent)
        starts[axis] = steps[axis] // 2 if options["half_pixel_centers"] else 0
        ours = np.arange(size) // repeats[axis] * steps[axis] + starts[axis]
        chosen = _nearest(extent, size, options)
        weights.append(np.eye(extent)[chosen])
        if (ours != chosen).any():  # not each as often as the others
            steps[axis] = 0
    if min(steps) == 0:
        return _resized(build, node, source, weights)
    shape = (sizes[0], sizes[1], source.shape[2])
    _emit(
        build, node, given, node.output, source.shape, shape,
        axes=(0, 1, 2), starts=starts, steps=steps, repeats=repeats,
    )  # fmt: skip


def _resized(
    build: Builder, node: Node, source: Tensor, weights: Sequence[NDArray[np.float64]]
) -> None:
    """``weights`` of old rows and columns, a row for each new one."""
    (top, down), (left, along) = map(banded, weights)
    target = build.target(node.output, like=source)
    op = Resize(node.name, (source.name,), target.name, firsts=(top, left), weights=(down, along))
    build.operators.append(op)


def _linear(extent: int, size: int, options: Options) -> NDArray[np.float64]:
    """The weights of TFLite's integer arithmetic, in units of 2**-10: resize_bilinear.h."""
    one, aligned = 1 << ONE_BITS, options["align_corners"] and size > 1
    count = size - aligned
    step = (one * (extent - aligned) + count // 2) // count
    at = np.arange(size) * step + (step // 2 - one // 2 if options["half_pixel_centers"] else 0)
    low = np.maximum(np.trunc(at / one), 0)
    high = np.minimum((at + one - 1) // one, extent - 1)
    share = at / one - low
    return spread(extent, [(low, 1 - share), (high, share)])


def _nearest(extent: int, size: int, options: Options) -> IntArray:
    """The indices that TFLite's float32 arithmetic gives: GetNearestNeighbor."""
    aligned, centres = options["align_corners"] and size > 1, bool(options["half_pixel_centers"])
    scale = np.float32(extent - aligned) / np.float32(size - aligned)
    place = (np.arange(size, dtype=np.float32) + np.float32(0.5 * centres)) * scale
    nearest = np.floor(place + np.float32(0.5)) if options["align_corners"] else np.floor(place)
    found: IntArray = nearest.astype(np.int64).clip(0, extent - 1)
    return found


def numbers(tensor: FileTensor, count: int) -> list[int]:
    """Read ``count`` integers of a constant."""
    found = [int(value) for value in values_of(tensor, INDICES).reshape(-1)]
    if len(found) != count:
        raise ThimbleError(f"{tensor.name} has {len(found)} numbers, expected {count}")
    return found


def _clamped(index: int, extent: int) -> int:
    return min(max(index + extent if index < 0 else index, 0), extent)


def _parts(build: Builder, node: Node, given: FileTensor, axis: int, sizes: Sequence[int]) -> None:
    """One after the other along ``axis``, an output each."""
    if sum(sizes) != given.dims[axis] or min(sizes) < 1:
        raise ThimbleError(f"its parts {list(sizes)} do not make {given.dims[axis]}")
    starts, counts = [0] * len(given.dims), list(given.dims)
    for target, size in zip(node.outputs, sizes, strict=True):
        counts[axis] = size
        _part(build, node, given, target, starts, counts)
        starts[axis] += size


def _part(
    build: Builder,
    node: Node,
    given: FileTensor,
    target: FileTensor,
    starts: Sequence[int],
    counts: Sequence[int],
    steps: Sequence[int] = (),
) -> None:
    """``counts`` entries of ``given`` along each axis of the file's shape."""
    steps = steps or [1] * len(given.dims)
    for extent, start, count, step in zip(given.dims, starts, counts, steps, strict=True):
        if start < 0 or count < 1 or start + (count - 1) * step >= extent:
            raise ThimbleError(
                f"it takes {list(counts)} from {list(starts)} of {given.name}, "
                f"{list(given.dims)}: that is nothing, or too much"
            )
    shape = build.source(given).shape
    own = slice(len(given.dims) - len(shape), None)  # without the batch axis
    _emit(build, node, given, target, shape, counts[own], starts=starts[own], steps=steps[own])


def _emit(
    build: Builder,
    node: Node,
    given: FileTensor,
    target: FileTensor,
    seen: tuple[int, ...],
    shape: Sequence[int],
    axes: Sequence[int] = (),
    starts: Sequence[int] = (),
    steps: Sequence[int] = (),
    repeats: Sequence[int] = (),
) -> None:
    """``given``, ``seen`` in a shape that suits, rearranged into ``target``."""
    same_quantization(given, target)
    source = build.source(given)
    if source.shape != seen:
        source = build.reshaped(source, seen)
    ones = (1,) * len(seen)
    made = build.target(target, like=source, shape=tuple(shape))
    build.operators.append(
        Rearrange(
            f"{node.name}_{len(build.operators)}",
            (source.name,),
            made.name,
            shape=tuple(shape),
            axes=tuple(axes) or tuple(range(len(seen))),
            starts=tuple(starts) or (0,) * len(seen),
            steps=tuple(steps) or ones,
            repeats=tuple(repeats) or ones,
        )
    )
    build.finish(target, made)


_STRIDED = "begin_mask:i32 end_mask:i32 ellipsis_mask:i32 new_axis_mask:i32 shrink_axis_mask:i32"

_CORNERS = "align_corners:bool half_pixel_centers:bool"

OPERATORS = {
    "SLICE": Entry(slice_),
    "STRIDED_SLICE": Entry(strided_slice, "StridedSliceOptions", f"{_STRIDED} offset:bool"),
    "SPLIT": Entry(split),
    "SPLIT_V": Entry(split_v),
    "UNPACK": Entry(unpack, "UnpackOptions", "num:i32 axis:i32"),
    "TRANSPOSE": Entry(transpose),
    "RESIZE_NEAREST_NEIGHBOR": Entry(resize, "ResizeNearestNeighborOptions", _CORNERS),
    "RESIZE_BILINEAR": Entry(resize, "ResizeBilinearOptions", f"height:i32 width:i32 {_CORNERS}"),
}
