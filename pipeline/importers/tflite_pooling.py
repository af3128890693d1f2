"""AVERAGE_POOL_2D, MAX_POOL_2D, MEAN, SUM, REDUCE_MAX and REDUCE_MIN.

Source of the arithmetic: tflite-micro's integer_ops/pooling.h and reduce.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.operators.along import ArgMax
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d, MinPool2d, Pool2d
from pipeline.graph.requant import FixedPoint, Mean, UnsignedMean
from pipeline.graph.tensor import Tensor
from pipeline.importers.moves import Move, moved, placed
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import (
    Entry,
    Options,
    axis_of,
    fused,
    image,
    padding,
    positive,
)


def pool_2d(build: Builder, node: Node, options: Options) -> None:
    """Padding takes no part; input and output of one quantization."""
    given = node.input(0)
    source = build.source(given)
    image(source.shape, given)
    same_quantization(given, node.output, tolerance=1e-6)
    target = build.target(node.output, like=source)
    kernel = positive(options, "filter_height", "filter_width")
    stride = positive(options, "stride_h", "stride_w")
    average = node.kind == "AVERAGE_POOL_2D"
    mean = UnsignedMean() if node.output.unsigned else Mean()
    make = partial(AveragePool2d, requant=mean) if average else MaxPool2d
    window = {"kernel": kernel, "stride": stride, "clip": fused(options, node.output)}
    around = padding(options, source.shape, kernel, stride)
    build.emit(make, [source.name], target.name, padding=around, **window)


def same_quantization(first: FileTensor, second: FileTensor, tolerance: float = 0.0) -> None:
    """Raises ThimbleError when two tensors differ in zero point, or in scale by more."""
    if first.zero_point != second.zero_point or abs(first.scale - second.scale) > tolerance:
        raise ThimbleError(
            f"{first.name} and {second.name} differ in scale or zero point, expected the same"
        )


def mean(build: Builder, node: Node, options: Options) -> None:
    """Over any axes but the batch's; to any quantization."""
    count, factor = _reduced(node), node.input(0).scale / node.output.scale
    scaled = FixedPoint.of([factor])
    multiplier, shift = scaled.multipliers[0], scaled.shifts[0]
    # TFLite divides the multiplier by the number of values, with as many bits as that adds
    spare = min(count.bit_length() - 1, 32, 31 + shift)
    requant = FixedPoint(((multiplier << spare) // count,), (shift - spare,))
    _reduce(build, node, build.source(node.input(0)), partial(AveragePool2d, requant=requant))


def sum_(build: Builder, node: Node, options: Options) -> None:
    """Over any axes but the batch's; to any quantization."""
    requant = FixedPoint.of([node.input(0).scale / node.output.scale])
    _reduce(build, node, build.source(node.input(0)), partial(AveragePool2d, requant=requant))


def reduce_extreme(build: Builder, node: Node, options: Options) -> None:
    """Over any axes but the batch's, in one quantization."""
    source = build.source(node.input(0))
    same_quantization(node.input(0), node.output)
    _reduce(build, node, source, MaxPool2d if node.kind == "REDUCE_MAX" else MinPool2d)


def arg_extreme(build: Builder, node: Node, options: Options) -> None:
    """Along any axis but the batch's, to int32: the first of several."""
    given, source = node.input(0), build.source(node.input(0))
    axes = values_of(node.input(1), ("INT32", "INT64")).reshape(-1)
    if len(axes) != 1:
        raise ThimbleError(f"it is along {len(axes)} axes, expected 1")
    here = axis_of(int(axes[0]), given) - (len(given.dims) - len(source.shape))
    if here < 0 or node.output.type not in ("INT32", "INT64"):
        raise ThimbleError("it is along the batch's axis, or its indices are no integers")
    op = ArgMax(node.name, (source.name,), "", axis=here, least=node.kind == "ARG_MIN")
    shape = op.infer({source.name: source})
    made = build.fresh(node.output.name, shape, "int32", (1.0,), 0)
    build.made[node.output.index] = made.name
    build.operators.append(replace(op, output=made.name))
    build.finish(node.output, made)


def reduced_axes(node: Node) -> tuple[int, ...]:
    """Return the reduced axes of the file's shape, in order, axes of one entry left out."""
    dims = node.input(0).dims
    given = [int(axis) for axis in values_of(node.input(1), ("INT32",)).reshape(-1)]
    if any(not -len(dims) <= axis < len(dims) for axis in given):
        raise ThimbleError(f"its axes {given} do not fit {node.input(0).name} of {list(dims)}")
    return tuple(sorted({axis % len(dims) for axis in given if dims[axis] > 1}))


def _reduced(node: Node) -> int:
    """Count the values that are reduced to one."""
    return prod(node.input(0).dims[axis] for axis in reduced_axes(node))


def _reduce(build: Builder, node: Node, source: Tensor, make: Callable[..., Pool2d]) -> None:
    """A pooling over the whole of some axes, which are brought to height and width if need be."""
    given, axes = node.input(0), reduced_axes(node)
    dims = source.shape if len(given.dims) < 5 else given.dims
    spatial = tuple(axis - (len(given.dims) - len(dims)) for axis in axes)
    if len(dims) == 3 and set(spatial) <= {0, 1}:
        kernel = tuple(source.shape[d] if d in spatial else 1 for d in (0, 1))
    else:
        order, moves = range(len(dims)), list[Move]()
        first, last = (spatial[0], spatial[-1] + 1) if spatial else (0, 0)
        if any(dims[axis] > 1 for axis in range(first, last) if axis not in spatial):
            order = sorted(order, key=lambda axis: axis in spatial)  # type: ignore[assignment]
            turned = np.arange(source.size).reshape(dims).transpose(order)
            moves = moved(turned.reshape(-1), source.size) or []
            dims, first, last = turned.shape, len(dims) - len(spatial), len(dims)
        shape = tuple(prod(dims[a:b]) for a, b in ((0, first), (first, last), (last, None)))
        if moves:
            source = build.tensors[placed(build, source.name, moves, shape)]
        else:
            source = build.reshaped(source, shape)
        kernel = 1, source.shape[1]
    shape = (source.shape[0] // kernel[0], source.shape[1] // kernel[1], source.shape[2])
    target, size = build.target(node.output, shape=shape), (kernel[0], kernel[1])
    build.emit(make, [source.name], target.name, kernel=size, stride=size)
    build.finish(node.output, target)


_POOL = "padding:i8 stride_w:i32 stride_h:i32 filter_width:i32 filter_height:i32 activation:i8"

OPERATORS = {
    "ARG_MAX": Entry(arg_extreme),
    "ARG_MIN": Entry(arg_extreme),
    "AVERAGE_POOL_2D": Entry(pool_2d, "Pool2DOptions", _POOL),
    "MAX_POOL_2D": Entry(pool_2d, "Pool2DOptions", _POOL),
    "MEAN": Entry(mean, "ReducerOptions", "keep_dims:bool"),
    "SUM": Entry(sum_, "ReducerOptions", "keep_dims:bool"),
    "REDUCE_MAX": Entry(reduce_extreme, "ReducerOptions", "keep_dims:bool"),
    "REDUCE_MIN": Entry(reduce_extreme, "ReducerOptions", "keep_dims:bool"),
}
