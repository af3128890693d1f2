"""CONV_3D, which TensorFlow Lite has of real numbers alone, between integers."""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.placing import Pad
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray
from pipeline.importers.moves import Move, moved, placed
from pipeline.importers.tflite_builder import Builder, Real, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, fused, padding, positive


def conv_3d(build: Builder, node: Node, options: Options) -> None:
    """Between DEQUANTIZE and QUANTIZE, without biases: its weights are quantized here."""
    real = build.reals.get(node.input(0).index)
    if real is None or real.quantize or len(node.input(0).dims) != 5 or node.optional(2):
        raise ThimbleError("it is supported of five axes, after DEQUANTIZE and without biases")
    source = build.tensors[real.source]
    integers = np.arange(-128, 128) - source.zero_point
    if not np.allclose(real.values, source.scale[0] * integers):
        raise ThimbleError("what it reads is no integers' own real values")
    ending = partial(_convolved, build, node, options)
    build.reals[node.output.index] = Real(real.source, real.values, ending)


def _convolved(build: Builder, node: Node, options: Options, target: FileTensor) -> None:
    """A 2-D convolution for each place in depth: images that it reads lie side by side."""
    source = build.tensors[build.reals[node.input(0).index].source]
    _, depth, height, width, channels = node.input(0).dims
    values = values_of(node.input(1), ("FLOAT32",)).transpose(4, 1, 2, 0, 3)
    outs, rows, columns, taps, _ = values.shape
    weights = values.reshape(outs, rows, columns, taps * channels)
    steps = np.maximum(abs(weights).max((1, 2, 3)), 1e-30) / 127
    stored: IntArray = np.rint(weights / steps[:, None, None, None]).astype(np.int64)
    scales = tuple(source.scale[0] * float(step) for step in steps)
    held = build.constant(f"{node.name}_weights", stored, "int8", tuple(map(float, steps)))
    zeros = build.constant(f"{node.name}_bias", np.zeros(outs, np.int32), "int32", scales)
    stride = positive(options, "stride_h", "stride_w")
    dilation = positive(options, "dilation_h", "dilation_w")
    along, apart = positive(options, "stride_d", "dilation_d")
    before, after, *_ = padding(options, (depth, 1, 1), (taps, 1), (along, 1), (apart, 1))
    around = padding(options, (height, width, 1), (rows, columns), stride, dilation)
    whole, name = (
        before + depth + after,
        build.shaped(source.name, (depth, height, width * channels)),
    )
    if whole > depth:
        padded = build.like(f"{name}_padded", source, (whole, height, width * channels))
        sides = ((before, after), (0, 0), (0, 0))
        build.operators.append(Pad(f"{node.name}_pad", (name,), padded, padding=sides))
        name = padded
    index = np.arange(whole * height * width * channels).reshape(whole, height, width, channels)
    parts = list[str]()
    for first in range(0, whole - (taps - 1) * apart, along):
        images = index[first : first + (taps - 1) * apart + 1 : apart].transpose(1, 2, 0, 3)
        moves: list[Move] = moved(images, index.size) or []
        image = placed(build, name, moves, (height, width, taps * channels))
        shape = (*target.dims[2:4], outs)
        made = build.fresh(f"{target.name}_part", shape, "int8", (target.scale,), target.zero_point)
        build.operators.append(Conv2d(
            f"{node.name}_{first}", (image,), made.name, (held.name, zeros.name), stride=stride,
            dilation=dilation, padding=around, clip=fused(options, target),
            requant=FixedPoint.of([scale / target.scale for scale in scales]),
        ))  # fmt: skip
        parts.append(made.name)
    build.become(target, build.joined(parts, 0))


OPERATORS = {
    "CONV_3D": Entry(
        conv_3d, "Conv3DOptions", "padding:i8 stride_d:i32 stride_w:i32 stride_h:i32 activation:i8 "
        "dilation_d:i32=1 dilation_w:i32=1 dilation_h:i32=1",
    ),
}  # fmt: skip
