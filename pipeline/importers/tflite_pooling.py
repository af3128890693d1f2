"""AVERAGE_POOL_2D, MAX_POOL_2D, MEAN and SUM.

Source of the arithmetic: tflite-micro's integer_ops/pooling.h and reduce.h.
"""

from __future__ import annotations

from functools import partial
from math import prod

from pipeline.errors import ThimbleError
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, Mean, UnsignedMean
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, fused, image, padding, positive


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
    build.operators.append(
        make(
            node.name,
            (source.name,),
            target.name,
            kernel=kernel,
            stride=stride,
            padding=padding(options, source.shape, kernel, stride),
            clip=fused(options, node.output),
        )
    )


def same_quantization(first: FileTensor, second: FileTensor, tolerance: float = 0.0) -> None:
    """Raises ThimbleError when two tensors differ in zero point, or in scale by more."""
    if first.zero_point != second.zero_point or abs(first.scale - second.scale) > tolerance:
        raise ThimbleError(
            f"{first.name} and {second.name} differ in scale or zero point, expected the same"
        )


def mean(build: Builder, node: Node, options: Options) -> None:
    """Over height, width or both, or any axes that lie side by side; to any quantization."""
    count, factor = _reduced(node), node.input(0).scale / node.output.scale
    scaled = FixedPoint.of([factor])
    multiplier, shift = scaled.multipliers[0], scaled.shifts[0]
    # TFLite divides the multiplier by the number of values, with as many bits as that adds
    spare = min(count.bit_length() - 1, 32, 31 + shift)
    _reduce(build, node, FixedPoint(((multiplier << spare) // count,), (shift - spare,)))


def sum_(build: Builder, node: Node, options: Options) -> None:
    """Over height, width or both, or any axes that lie side by side; to any quantization."""
    _reduce(build, node, FixedPoint.of([node.input(0).scale / node.output.scale]))


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


def _reduce(build: Builder, node: Node, requant: FixedPoint) -> None:
    """A pooling over the whole of some axes, which are brought to height and width if need be."""
    source, given, axes = build.source(node.input(0)), node.input(0), reduced_axes(node)
    offset = len(given.dims) - len(source.shape)
    spatial = tuple(axis - offset for axis in axes)
    if len(source.shape) == 3 and set(spatial) <= {0, 1}:
        kernel = tuple(source.shape[d] if d in spatial else 1 for d in (0, 1))
    else:
        first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
        if any(given.dims[axis] > 1 for axis in range(first, last) if axis not in axes):
            raise ThimbleError(f"its axes {list(axes)} do not lie side by side")
        rows, inner = prod(given.dims[:first]), prod(given.dims[last:])
        source = build.reshaped(source, (rows, prod(given.dims[first:last]), inner))
        kernel = 1, source.shape[1]
    shape = (source.shape[0] // kernel[0], source.shape[1] // kernel[1], source.shape[2])
    target = build.target(node.output, shape=shape)
    build.operators.append(
        AveragePool2d(
            node.name,
            (source.name,),
            target.name,
            kernel=(kernel[0], kernel[1]),
            stride=(kernel[0], kernel[1]),
            requant=requant,
        )
    )
    build.finish(node.output, target)


_POOL = "padding:i8 stride_w:i32 stride_h:i32 filter_width:i32 filter_height:i32 activation:i8"

OPERATORS = {
    "AVERAGE_POOL_2D": Entry(pool_2d, "Pool2DOptions", _POOL),
    "MAX_POOL_2D": Entry(pool_2d, "Pool2DOptions", _POOL),
    "MEAN": Entry(mean, "ReducerOptions", "keep_dims:bool"),
    "SUM": Entry(sum_, "ReducerOptions", "keep_dims:bool"),
}
