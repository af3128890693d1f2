"""CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED: products with int8 weights.

Source of the arithmetic: tflite-micro's reference kernels and kernel_util.cc, which take no notice
of zero points that int8 weights of a convolution may have: here they count. Sums are requantized by
input scale * weight scale / output scale, in float64, of uint8 networks the product in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph.operators.along import MatMul
from pipeline.graph.operators.conv2d import Conv2d, Dense, TransposeConv
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray, within_int8
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, fused, image, padding, positive


def conv_2d(build: Builder, node: Node, options: Options) -> None:
    """int8 or int4 weights, per channel or per tensor; stride, dilation, groups; zero points."""
    source = build.source(node.input(0))
    weights, scales = _weights(node.input(1), rank=4)  # (c_out, kh, kw, c_in / groups)
    image(source.shape, node.input(0))
    channels, depth = source.shape[2], weights.shape[3]
    if channels % depth or weights.shape[0] % (channels // depth):
        raise ThimbleError(
            f"{len(weights)} filters of {depth} channels do not fit an input of {channels}"
        )
    _convolution(build, node, options, weights, scales, channels // depth)


def depthwise_conv_2d(build: Builder, node: Node, options: Options) -> None:
    """int8 or int4 weights, per channel or per tensor; stride, dilation, multiplier; zero
    points."""
    source = build.source(node.input(0))
    weights, scales = _weights(node.input(1), rank=4, channel_axis=3)  # (1, kh, kw, c_out)
    image(source.shape, node.input(0))
    channels = source.shape[2]
    if weights.shape[0] != 1 or weights.shape[3] != channels * options["depth_multiplier"]:
        raise ThimbleError(
            f"weights of shape {list(weights.shape)} do not fit {channels} channels with the "
            f"multiplier {options['depth_multiplier']}"
        )
    _convolution(build, node, options, weights.transpose(3, 1, 2, 0), scales, channels)


def _convolution(
    build: Builder,
    node: Node,
    options: Options,
    weights: IntArray,
    scales: tuple[float, ...],
    groups: int,
) -> None:
    source = build.source(node.input(0))
    stride = positive(options, "stride_h", "stride_w")
    dilation = positive(options, "dilation_h", "dilation_w")
    kernel = weights.shape[1], weights.shape[2]
    parameters = _parameters(build, node, weights, scales)
    window = {"stride": stride, "dilation": dilation, "groups": groups}
    build.emit(
        Conv2d, [source.name], build.target(node.output).name, parameters=parameters,
        padding=padding(options, source.shape, kernel, stride, dilation), **window,
        clip=fused(options, node.output), requant=_requant(node, scales),
    )  # fmt: skip


def transpose_conv(build: Builder, node: Node, options: Options) -> None:
    """int8 weights, per channel or per tensor; any stride, SAME or VALID."""
    given = node.input(2)
    source, (weights, scales) = build.source(given), _weights(node.input(1), rank=4)
    image(source.shape, given)
    stride = positive(options, "stride_h", "stride_w")
    turned = replace(node, inputs=(given, node.input(1), node.optional(3)))
    parameters, target = _parameters(build, turned, weights, scales), build.target(node.output)
    image(target.shape, node.output)
    top, _, left, _ = padding(options, target.shape, (weights.shape[1], weights.shape[2]), stride)
    build.emit(
        TransposeConv, [source.name], target.name, parameters=parameters, size=target.shape[:2],
        stride=stride, before=(top, left), clip=fused(options, node.output),
        requant=_requant(turned, scales),
    )  # fmt: skip


def batch_matmul(build: Builder, node: Node, options: Options) -> None:
    """Multiply two activations, each as it is or transposed."""
    sources, operands = [build.source(node.input(n)) for n in (0, 1)], list[str]()
    for n, source in enumerate(sources):
        *lead, rows, columns = node.input(n).dims
        operands.append(build.shaped(source.name, (prod(lead), rows, columns)))
    ratio = node.input(0).scale * node.input(1).scale / node.output.scale
    *lead, rows, columns = node.output.dims
    target = build.target(node.output, shape=(prod(lead), rows, columns))
    turned, requant = (bool(options["adj_x"]), bool(options["adj_y"])), FixedPoint.of([ratio])
    given = {"operands": tuple(operands), "turned": turned, "requant": requant}
    build.emit(MatMul, list(dict.fromkeys(operands)), target.name, **given)
    build.finish(node.output, target)


def fully_connected(build: Builder, node: Node, options: Options) -> None:
    """int8 or int4 weights, per channel or per tensor; also of each row of a matrix; zero
    points."""
    if options["weights_format"]:
        raise ThimbleError("its weights are shuffled; convert the model for microcontrollers")
    source = build.source(node.input(0))
    weights, scales = _weights(node.input(1), rank=2)  # (c_out, inputs)
    outs, depth = weights.shape
    if source.size % depth:
        raise ThimbleError(f"{source.size} inputs do not fit weights for {depth}")
    clip, requant = fused(options, node.output), _requant(node, scales)
    rows, alone = source.size // depth, source.size == depth
    if not alone and source.shape[2:] != (depth,):
        source = build.reshaped(source, (1, rows, depth))
    kernel = source.shape if alone else (1, 1, depth)  # every row alike: a 1x1 convolution
    parameters = _parameters(build, node, weights.reshape(outs, *kernel), scales)
    target = build.target(node.output, shape=(outs,) if alone else (*source.shape[:2], outs))
    given = {"parameters": parameters, "clip": clip, "requant": requant}
    build.emit(Dense if alone else Conv2d, [source.name], target.name, **given)
    build.finish(node.output, target)


def _weights(
    tensor: FileTensor, rank: int, channel_axis: int = 0
) -> tuple[IntArray, tuple[float, ...]]:
    """Return what is multiplied, integers less their zero points; one scale, or one a channel."""
    values, count = values_of(tensor, ("INT8", "INT4")), len(tensor.scales)
    if values.ndim != rank:
        raise ThimbleError(f"{tensor.name} has {values.ndim} axes, expected {rank}")
    channels = values.shape[channel_axis]
    if count != 1 and (count != channels or tensor.axis != channel_axis):
        raise ThimbleError(
            f"{tensor.name} has {count} scales along axis {tensor.axis}, expected 1, or {channels} "
            f"along axis {channel_axis}"
        )
    zeros = np.array(tensor.zero_points or (0,)).reshape((-1,) + (1,) * (rank - 1 - channel_axis))
    return values.astype(np.int64) - zeros, tensor.scales


def _requant(node: Node, scales: tuple[float, ...]) -> FixedPoint:
    factor, out = node.input(0).scale, node.output.scale
    bias = node.optional(2)
    if node.output.type == "INT16" and (bias is None or bias.type == "INT64"):
        return wide([factor * scale / out for scale in scales])
    if node.output.unsigned:
        return FixedPoint.of([float(np.float32(factor) * np.float32(scales[0])) / out])
    return FixedPoint.of([factor * scale / out for scale in scales])


def wide(scales: Sequence[float]) -> FixedPoint:
    """Factors of TFLite's sums of 64 bits: multipliers of 16 bits, results rounded once."""
    found = FixedPoint.of(scales)
    if min(found.shifts) < -16:
        raise ThimbleError(f"the factor {min(scales):g} of its sums is too small for 16 bits")
    pairs = zip(found.multipliers, found.shifts, strict=True)
    multipliers = (min((m + (1 << 15)) >> 16, (1 << 15) - 1) << 16 + min(s, 0) for m, s in pairs)
    return FixedPoint(tuple(multipliers), tuple(max(s, 0) for s in found.shifts))


def _parameters(
    build: Builder, node: Node, weights: IntArray, scales: tuple[float, ...]
) -> tuple[str, str]:
    """(weights, bias): an absent bias is zeros."""
    given = node.optional(2)
    bias: NDArray[np.integer] = np.zeros(len(weights), np.int32)
    if given is not None:
        bias = values_of(given, ("INT32", "INT64")).reshape(-1)
        if len(bias) != len(weights):
            raise ThimbleError(f"{given.name} has {len(bias)} values for {len(weights)} channels")
    stored, zero = within_int8(node.input(1).name, weights)
    held = build.constant(node.input(1).name, stored, "int8", scales, zero)
    name = f"{node.name}_bias" if given is None else given.name
    steps = tuple(node.input(0).scale * scale for scale in scales)
    return held.name, build.constant(name, bias, "int32", steps).name


OPERATORS = {
    "CONV_2D": Entry(
        conv_2d,
        "Conv2DOptions",
        "padding:i8 stride_w:i32 stride_h:i32 activation:i8 dilation_w:i32=1 dilation_h:i32=1",
    ),
    "DEPTHWISE_CONV_2D": Entry(
        depthwise_conv_2d,
        "DepthwiseConv2DOptions",
        "padding:i8 stride_w:i32 stride_h:i32 depth_multiplier:i32 activation:i8 "
        "dilation_w:i32=1 dilation_h:i32=1",
    ),
    "TRANSPOSE_CONV": Entry(
        transpose_conv, "TransposeConvOptions", "padding:i8 stride_w:i32 stride_h:i32 activation:i8"
    ),
    "BATCH_MATMUL": Entry(batch_matmul, "BatchMatMulOptions", "adj_x:bool adj_y:bool"),
    "FULLY_CONNECTED": Entry(
        fully_connected, "FullyConnectedOptions", "activation:i8 weights_format:i8"
    ),
}
