"""Operators that repeat elements, stack tensors, or turn blocks of pixels into channels and back.

Source of the rules: tflite-micro's depth_to_space.h, space_to_depth.h, pack.cc, gather.h,
mirror_pad.cc and broadcast_to.cc, LiteRT's tile.cc and reverse.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray
from pipeline.importers.moves import flanked
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, axis_of, image, positive
from pipeline.importers.tflite_pooling import same_quantization
from pipeline.importers.tflite_slices import INDICES, Lists, moving, numbers, places


def tile(node: Node, options: Options) -> list[IntArray]:
    """Repeat as often along each axis as constants say."""
    given = node.input(0)
    counts = numbers(node.input(1), len(given.dims))
    if min(counts) < 1:
        raise ThimbleError(f"it repeats {given.name} {counts} times")
    return [np.tile(places(given), counts)]


def broadcast_to(node: Node, options: Options) -> list[IntArray]:
    """To a shape that the file states."""
    given, wanted = node.input(0), node.output.dims
    dims = (1,) * (len(wanted) - len(given.dims)) + given.dims
    if len(dims) != len(wanted) or any(n not in (1, m) for n, m in zip(dims, wanted, strict=True)):
        raise ThimbleError(f"{list(given.dims)} does not broadcast to {list(wanted)}")
    return [np.broadcast_to(places(given).reshape(dims), wanted)]


def depth_to_space(node: Node, options: Options) -> list[IntArray]:
    """Channels become blocks of pixels."""
    given, (size, _) = node.input(0), positive(options, "block_size", "block_size")
    image(given.shape, given)
    _, height, width, channels = given.dims
    if channels % (size * size):
        raise ThimbleError(f"{channels} channels do not make blocks of {size}x{size} pixels")
    return [places(given).reshape(height, width, size, size, -1).transpose(0, 2, 1, 3, 4)]


def space_to_depth(node: Node, options: Options) -> list[IntArray]:
    """Blocks of pixels become channels."""
    given, (size, _) = node.input(0), positive(options, "block_size", "block_size")
    image(given.shape, given)
    _, height, width, channels = given.dims
    if height % size or width % size:
        raise ThimbleError(f"{height}x{width} pixels are not in blocks of {size}")
    apart = places(given).reshape(height // size, size, width // size, size, channels)
    return [apart.transpose(0, 2, 1, 3, 4)]


def pack(build: Builder, node: Node, options: Options) -> None:
    """Along any axis but the batch's; all tensors of one quantization."""
    given = [node.input(n) for n in range(len(node.inputs))]
    axis, wanted = axis_of(options["axis"], node.output), list(node.output.dims)
    wanted[axis] = 1
    ahead, _, behind = flanked(wanted, axis)
    for each in given:
        same_quantization(each, node.output)
        if each.size != ahead * behind:
            raise ThimbleError(f"{each.name} has the shape {list(each.dims)}")
    if len(given) != node.output.dims[axis]:
        raise ThimbleError(f"{len(given)} tensors do not make {list(node.output.dims)}")
    held = [build.source(each).name for each in given]
    parts = [build.shaped(each, (ahead, 1, behind)) for each in held]
    build.become(node.output, build.joined(parts, 1))


def gather(node: Node, options: Options) -> list[Lists]:
    """Constant indices along any axis but the batch's."""
    given = node.input(0)
    axis, lists = axis_of(options["axis"], given), every(given)
    if options["batch_dims"]:
        raise ThimbleError("its indices differ along a batch")
    lists[axis] = numbers(node.input(1))
    return [lists]


def mirror_pad(node: Node, options: Options) -> list[Lists]:
    """Pad by a reflection, with the border or without it, on any axis but the batch's."""
    given, mode = node.input(0), "symmetric" if options["mode"] else "reflect"
    amounts = values_of(node.input(1), INDICES)
    fits = amounts.shape == (len(given.dims), 2) and amounts.min() >= 0
    most = [extent - (mode == "reflect") for extent in given.dims]
    if not fits or (amounts.max(1) > most).any():
        raise ThimbleError(f"its paddings {amounts.tolist()} do not fit {list(given.dims)}")
    pairs = zip(every(given), amounts, strict=True)
    return [[np.pad(each, pair, mode=mode).tolist() for each, pair in pairs]]  # type: ignore[call-overload]


def reverse(node: Node, options: Options) -> list[Lists]:
    """Along any axes but the batch's."""
    given = node.input(0)
    lists = every(given)
    for number in numbers(node.input(1)):
        axis = axis_of(number, given)
        lists[axis] = range(given.dims[axis])[::-1]
    return [lists]


def blocks(build: Builder, node: Node, options: Options) -> None:
    """Around a convolution without padding and strides, which is dilated then."""
    raise ThimbleError("it is supported around a convolution that it makes a dilated one of")


def densify(build: Builder, node: Node, options: Options) -> None:
    """Import constants, which are read whole."""
    raise ThimbleError("of what is computed it is not supported")


def every(given: FileTensor) -> list[Sequence[int]]:
    """Return all indices along each axis."""
    return [range(extent) for extent in given.dims]


OPERATORS = {
    "TILE": Entry(moving(tile)),
    "BROADCAST_TO": Entry(moving(broadcast_to), reads=1),
    "DEPTH_TO_SPACE": Entry(moving(depth_to_space), "DepthToSpaceOptions", "block_size:i32"),
    "SPACE_TO_DEPTH": Entry(moving(space_to_depth), "SpaceToDepthOptions", "block_size:i32"),
    "PACK": Entry(pack, "PackOptions", "values_count:i32 axis:i32"),
    "GATHER": Entry(moving(gather), "GatherOptions", "axis:i32 batch_dims:i32"),
    "MIRROR_PAD": Entry(moving(mirror_pad), "MirrorPadOptions", "mode:i8"),
    "REVERSE_V2": Entry(moving(reverse)),
    "SPACE_TO_BATCH_ND": Entry(blocks),
    "BATCH_TO_SPACE_ND": Entry(blocks),
    "DENSIFY": Entry(densify),
}
