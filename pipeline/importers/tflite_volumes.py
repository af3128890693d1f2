"""CONV_3D, which TensorFlow Lite has of real numbers alone, between integers."""

from __future__ import annotations

from functools import partial
from typing import Any

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
    """A 2-D convolution for each place in depth: images that it reads lie side by side. With
    ``Builder.stacked`` one for all, where nothing is padded and no row is stepped over."""
    source = build.tensors[build.reals[node.input(0).index].source]
    _, depth, height, width, channels = node.input(0).dims
    values = values_of(node.input(1), ("FLOAT32",)).transpose(4, 1, 2, 0, 3)
    outs, rows, columns, taps, _ = values.shape
    steps = np.maximum(abs(values).max((1, 2, 3, 4)), 1e-30) / 127
    stored: IntArray = np.rint(values / steps[:, None, None, None, None]).astype(np.int64)
    scales = tuple(source.scale[0] * float(step) for step in steps)
    zeros = build.constant(f"{node.name}_bias", np.zeros(outs, np.int32), "int32", scales)
    requant = FixedPoint.of([scale / target.scale for scale in scales])
    stride = positive(options, "stride_h", "stride_w")
    dilation = positive(options, "dilation_h", "dilation_w")
    along, apart = positive(options, "stride_d", "dilation_d")
    before, after, *_ = padding(options, (depth, 1, 1), (taps, 1), (along, 1), (apart, 1))
    around = padding(options, (height, width, 1), (rows, columns), stride, dilation)

    def weights(each: IntArray) -> str:
        scale = tuple(map(float, steps))
        return build.constant(f"{node.name}_weights", each, "int8", scale).name

    def convolved(image: str, held: str, height: int, **fields: Any) -> str:
        shape = height, target.dims[3], outs
        made = build.fresh(f"{target.name}_part", shape, "int8", (target.scale,), target.zero_point)
        build.operators.append(Conv2d(
            node.name, (image,), made.name, (held, zeros.name), stride=stride,
            clip=fused(options, target), requant=requant, **fields,
        ))  # fmt: skip
        return made.name

    if build.stacked and along == stride[0] == 1 and not any((before, after, *around)):
        name, pitch = build.pitches.get(source.name, (source.name, height))
        below = (rows - 1) * dilation[0]
        wide = np.zeros((outs, (taps - 1) * apart * pitch + below + 1, columns, channels), np.int64)
        for tap in range(taps):  # rows between are of weights 0
            first = tap * apart * pitch
            wide[:, first : first + below + 1 : dilation[0]] = stored[:, :, :, tap]
        image = build.shaped(name, (depth * pitch, width, channels))
        deep, high = target.dims[1:3]
        made = convolved(image, weights(wide), deep * pitch, dilation=(1, dilation[1]),
                         padding=(0, below, 0, 0))  # fmt: skip
        lines = np.arange(build.tensors[made].size).reshape(deep, pitch, -1)
        moves: list[Move] = moved(lines[:, :high], lines.size) or []
        build.become(target, placed(build, made, moves, target.shape))
        if moves:  # the next one reads what is left out, too, for results that it leaves out
            build.pitches[build.made[target.index]] = made, pitch
        return
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
    held, parts = weights(stored.reshape(outs, rows, columns, -1)), list[str]()
    for first in range(0, whole - (taps - 1) * apart, along):
        images = index[first : first + (taps - 1) * apart + 1 : apart].transpose(1, 2, 0, 3)
        moves = moved(images, index.size) or []
        image = placed(build, name, moves, (height, width, taps * channels))
        parts.append(convolved(image, held, target.dims[2], dilation=dilation, padding=around))
    build.become(target, build.joined(parts, 0))


OPERATORS = {
    "CONV_3D": Entry(
        conv_3d, "Conv3DOptions", "padding:i8 stride_d:i32 stride_w:i32 stride_h:i32 activation:i8 "
        "dilation_d:i32=1 dilation_w:i32=1 dilation_h:i32=1",
    ),
}  # fmt: skip
