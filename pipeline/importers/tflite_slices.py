"""Operators that choose elements of a tensor and put them elsewhere: slices, parts, transpositions,
neighbours.

Source of the rules: tflite-micro's strided_slice_logic.h, split.cc, transpose.h,
resize_nearest_neighbor.h and resize_bilinear.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph.operators.resize import ONE_BITS, Resize
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.importers.moves import moved, placed, regular, taken
from pipeline.importers.resampling import banded, spread
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, axis_of, image
from pipeline.importers.tflite_pooling import same_quantization
from pipeline.importers.tflite_shapes import reshape

INDICES = ("INT32", "INT64")
Lists = Sequence[Sequence[int]]
"""The indices that are taken along each axis of a file's tensor."""


Rule = Callable[[Node, Options], Sequence[Lists | IntArray]]
"""What each output has of the input: indices along each axis, or the places of all its entries."""


def moving(rule: Rule) -> Callable[[Builder, Node, Options], None]:
    @wraps(rule)
    def moved_by_rule(build: Builder, node: Node, options: Options) -> None:
        for target, chosen in chosen_by(rule, node, options):
            if isinstance(chosen, np.ndarray):
                put(build, moved_input(node), target, chosen)
            else:
                take(build, moved_input(node), target, chosen)

    return moved_by_rule


def chosen_by(
    rule: Rule, node: Node, options: Options
) -> Sequence[tuple[FileTensor, Lists | IntArray]]:
    """Return each output, and what it has of the input."""
    found = rule(node, options)
    if len(found) != len(node.outputs):
        raise ThimbleError(f"it has {len(node.outputs)} outputs, expected {len(found)}")
    return list(zip(node.outputs, found, strict=True))


def moved_input(node: Node) -> FileTensor:
    """Return what is moved; SPLIT's axis comes before it."""
    return node.input(1 if node.kind == "SPLIT" else 0)


def slice_(node: Node, options: Options) -> list[Lists]:
    """Take from any start, of any size; start and size are constants."""
    dims = node.input(0).dims
    begins, sizes = (numbers(node.input(n), len(dims)) for n in (1, 2))
    whole = zip(dims, begins, sizes, strict=True)
    return [[range(a, extent if size == -1 else a + size) for extent, a, size in whole]]


def strided_slice(node: Node, options: Options) -> list[Lists]:
    """With constant limits, and steps of any sign."""
    dims = node.input(0).dims
    begins, ends, steps = (numbers(node.input(n)) for n in (1, 2, 3))
    if not len(begins) == len(ends) == len(steps) or 0 in steps:
        raise ThimbleError(f"its limits {begins}, {ends} and {steps} do not go together")
    found = list[range]()
    for place, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        bit = 1 << place
        if options["ellipsis_mask"] & bit:
            later = sum(not options["new_axis_mask"] >> n & 1 for n in range(place + 1, len(steps)))
            found += [range(extent) for extent in dims[len(found) : len(dims) - later]]
        elif not options["new_axis_mask"] & bit:
            if len(found) == len(dims):
                raise ThimbleError(f"it has more limits than {list(dims)} has axes")
            every = range(dims[len(found)])
            start = None if options["begin_mask"] & bit else begin
            stop = None if options["end_mask"] & bit else end
            if options["offset"] and stop is not None:
                stop = (start or 0) + end
            if options["shrink_axis_mask"] & bit:
                stop, step = begin + 1 or None, 1
            found.append(every[slice(start, stop, step)])
    return [found + [range(extent) for extent in dims[len(found) :]]]


def split(node: Node, options: Options) -> list[Lists]:
    """Into equal parts along any axis but the batch's."""
    given, count = node.input(1), len(node.outputs)
    axis = axis_of(numbers(node.input(0), 1)[0], given)
    size, left = divmod(given.dims[axis], count)
    if left:
        raise ThimbleError(f"{given.dims[axis]} entries do not make {count} parts")
    return parts(given, axis, [size] * count)


def split_v(node: Node, options: Options) -> list[Lists]:
    """Into parts of given sizes along any axis but the batch's."""
    given = node.input(0)
    axis = axis_of(numbers(node.input(2), 1)[0], given)
    sizes = numbers(node.input(1), len(node.outputs))
    rest = given.dims[axis] - sum(size for size in sizes if size != -1)
    return parts(given, axis, [rest if size == -1 else size for size in sizes])


def unpack(node: Node, options: Options) -> list[Lists]:
    """Along any axis but the batch's."""
    given = node.input(0)
    return parts(given, axis_of(options["axis"], given), [1] * len(node.outputs))


def parts(given: FileTensor, axis: int, sizes: Sequence[int]) -> list[Lists]:
    """Return what is in parts of these sizes, one after the other along ``axis``."""
    if sum(sizes) != given.dims[axis] or min(sizes) < 1:
        raise ThimbleError(f"its parts {list(sizes)} do not make {given.dims[axis]}")
    lists = [range(extent) for extent in given.dims]
    ends = list(accumulate(sizes))
    pairs = zip(sizes, ends, strict=True)
    return [[*lists[:axis], range(end - size, end), *lists[axis + 1 :]] for size, end in pairs]


def transpose(build: Builder, node: Node, options: Options) -> None:
    """In any order."""
    given = node.input(0)
    order = numbers(node.input(1), len(given.dims))
    if sorted(order) != list(range(len(given.dims))):
        raise ThimbleError(f"its order {order} does not fit {given.name} of {list(given.dims)}")
    if [axis for axis in order if given.dims[axis] > 1] == [
        axis for axis, extent in enumerate(given.dims) if extent > 1
    ]:
        return reshape(build, node, options)
    put(build, given, node.output, places(given).transpose(order))


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
    pairs = list(zip(source.shape, sizes, strict=False))
    chosen = [_nearest(*pair, options) for pair in pairs]
    if not all(map(regular, chosen)):  # not each as often as the others
        weights = [np.eye(extent)[at] for (extent, _), at in zip(pairs, chosen, strict=True)]
        return _resized(build, node, source, weights)
    rows, columns = (each.tolist() for each in chosen)
    take(build, given, node.output, (range(1), rows, columns, range(given.dims[3])))


def _resized(
    build: Builder, node: Node, source: Tensor, weights: Sequence[NDArray[np.float64]]
) -> None:
    """``weights`` of old rows and columns, a row for each new one."""
    (top, down), (left, along) = map(banded, weights)
    target = build.target(node.output, like=source)
    given = {"firsts": (top, left), "weights": (down, along)}
    build.emit(Resize, [source.name], target.name, **given)


def _linear(extent: int, size: int, options: Options) -> NDArray[np.float64]:
    """Return the weights of TFLite's integer arithmetic, in units of 2**-10: resize_bilinear.h."""
    one, aligned = 1 << ONE_BITS, options["align_corners"] and size > 1
    count = size - aligned
    step = (one * (extent - aligned) + count // 2) // count
    at = np.arange(size) * step + (step // 2 - one // 2 if options["half_pixel_centers"] else 0)
    low = np.maximum(np.trunc(at / one), 0)
    high = np.minimum((at + one - 1) // one, extent - 1)
    share = at / one - low
    return spread(extent, [(low, 1 - share), (high, share)])


def _nearest(extent: int, size: int, options: Options) -> IntArray:
    """Return the indices that TFLite's float32 arithmetic gives: GetNearestNeighbor."""
    aligned, centres = options["align_corners"] and size > 1, bool(options["half_pixel_centers"])
    scale = np.float32(extent - aligned) / np.float32(size - aligned)
    place = (np.arange(size, dtype=np.float32) + np.float32(0.5 * centres)) * scale
    nearest = np.floor(place + np.float32(0.5)) if options["align_corners"] else np.floor(place)
    found: IntArray = nearest.astype(np.int64).clip(0, extent - 1)
    return found


def numbers(tensor: FileTensor, count: int | None = None) -> list[int]:
    """Read the integers of a constant, ``count`` if that is given."""
    found = [int(value) for value in values_of(tensor, INDICES).reshape(-1)]
    if count is not None and len(found) != count:
        raise ThimbleError(f"{tensor.name} has {len(found)} numbers, expected {count}")
    return found


def take(build: Builder, given: FileTensor, target: FileTensor, lists: Lists) -> None:
    """Make ``target`` of the entries of ``given`` that the lists say, axis by axis."""
    for axis, (extent, each) in enumerate(zip(given.dims, lists, strict=True)):
        if not each or not 0 <= min(each) <= max(each) < extent:
            raise ThimbleError(
                f"it takes {list(each[:9])} along axis {axis} of {given.name}, which has {extent}: "
                "that is nothing, or too much"
            )
    if len(given.dims) > 4:
        return put(build, given, target, places(given)[np.ix_(*lists)])
    same_quantization(given, target)
    source = build.source(given)
    own = lists[len(given.dims) - len(source.shape) :]  # without the batch axis
    build.become(target, taken(build, source.name, source.shape, own))


def places(given: FileTensor) -> IntArray:
    """Return the places of its entries, in the file's shape."""
    return np.arange(given.size).reshape(given.dims)


def put(build: Builder, given: FileTensor, target: FileTensor, index: IntArray) -> None:
    """Make ``target`` of the entries of ``given`` at the places ``index``."""
    same_quantization(given, target)
    if index.size != target.size:
        raise ThimbleError(f"it makes {list(index.shape)}, expected {list(target.dims)}")
    if (moves := moved(index, given.size)) is None:
        raise ThimbleError(f"it takes {given.name} from places at uneven distances")
    build.become(target, placed(build, build.source(given).name, moves, target.shape))


_STRIDED = "begin_mask:i32 end_mask:i32 ellipsis_mask:i32 new_axis_mask:i32 shrink_axis_mask:i32"

_CORNERS = "align_corners:bool half_pixel_centers:bool"

OPERATORS = {
    "SLICE": Entry(moving(slice_)),
    "STRIDED_SLICE": Entry(moving(strided_slice), "StridedSliceOptions", f"{_STRIDED} offset:bool"),
    "SPLIT": Entry(moving(split)),
    "SPLIT_V": Entry(moving(split_v)),
    "UNPACK": Entry(moving(unpack), "UnpackOptions", "num:i32 axis:i32"),
    "TRANSPOSE": Entry(transpose),
    "RESIZE_NEAREST_NEIGHBOR": Entry(resize, "ResizeNearestNeighborOptions", _CORNERS),
    "RESIZE_BILINEAR": Entry(resize, "ResizeBilinearOptions", f"height:i32 width:i32 {_CORNERS}"),
}
