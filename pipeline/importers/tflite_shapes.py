"""Operators that move 8-bit integers unchanged, and those at the border to other types."""

from __future__ import annotations

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.operators.placing import Pad, Reshape
from pipeline.graph.tensor import Tensor
from pipeline.importers.moves import flanked
from pipeline.importers.tflite_builder import Builder, values_of
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, axis_of
from pipeline.importers.tflite_pooling import same_quantization


def reshape(build: Builder, node: Node, options: Options) -> None:
    """To a shape that the file states; how it is computed there plays no part."""
    source = build.source(node.input(0))
    if node.input(0).zero_point != node.output.zero_point:
        raise ThimbleError("its input and output have different zero points")
    target = build.target(node.output, like=source)
    build.emit(Reshape, [source.name], target.name, shape=node.output.shape)


def concatenation(build: Builder, node: Node, options: Options) -> None:
    """Along any axis but the batch's; all tensors of one quantization, but of uint8."""
    if options["activation"]:
        raise ThimbleError("its fused activation is not supported")
    sources = [build.source(node.input(i)) for i in range(len(node.inputs))]
    for i, source in enumerate(sources):
        if node.output.unsigned:
            sources[i] = _rescaled(build, source, node.input(i), node.output)
        else:
            same_quantization(node.input(i), node.output)
    axis = axis_of(options["axis"], node.output)
    if any(each is None or len(each.dims) != len(node.output.dims) for each in node.inputs):
        raise ThimbleError(f"not all of what it joins has {len(node.output.dims)} axes")
    if axis == 0 and len(node.output.dims) > 1:
        raise ThimbleError("it joins along the batch axis, and a batch of 1 is supported")
    own = axis - (len(node.output.dims) - len(node.output.shape))
    names = [source.name for source in sources]
    if len(node.output.dims) > 4:
        seen = [flanked(node.input(n).dims, axis) for n in range(len(names))]
        names, own = [build.shaped(*each) for each in zip(names, seen, strict=True)], 1
    build.become(node.output, build.joined(names, own))


def _rescaled(build: Builder, source: Tensor, given: FileTensor, target: FileTensor) -> Tensor:
    """``source`` as ``target`` is quantized: TFLite's ConcatenationWithScaling, in float32."""
    if (given.scale, given.zero_point) == (target.scale, target.zero_point):
        return source
    scale = np.float32(given.scale) * (1 / np.float32(target.scale))
    raw = np.arange(256, dtype=np.float32)
    steps = raw * scale + np.float32(-(given.zero_point + 128)) * scale
    found = np.trunc(steps + np.copysign(np.float32(0.5), steps)).astype(int) + target.zero_point
    table = tuple(map(int, found.clip(-128, 127)))
    return build.mapped(source, table, target.zero_point, (target.scale,))


def pad(build: Builder, node: Node, options: Options) -> None:
    """With the real value 0, or with a constant (PADV2), on any axis but the batch's."""
    source = build.source(node.input(0))
    same_quantization(node.input(0), node.output)
    amounts = values_of(node.input(1), ("INT32", "INT64"))
    if amounts.shape != (len(node.input(0).dims), 2) or amounts.min() < 0:
        raise ThimbleError(f"its paddings {amounts.tolist()} do not fit {node.input(0).name}")
    pairs = [(int(before), int(after)) for before, after in amounts]
    dims = list(node.input(0).dims)
    if any(pairs[0]) and len(pairs) > 1:
        raise ThimbleError("it pads the batch axis, and a batch of 1 is supported")
    value = None
    if (constant := node.optional(2)) is not None:
        same_quantization(constant, node.output)
        given = values_of(constant, ("INT8",)).reshape(-1)
        if len(given) != 1:
            raise ThimbleError(f"{constant.name} has {len(given)} values, expected 1")
        value = None if given[0] == node.output.zero_point else int(given[0])
    steps = [(source.shape, pairs[len(pairs) - len(source.shape) :])]
    if len(dims) > 4:  # axis by axis
        steps = []
        for axis, pair in enumerate(pairs):
            steps += [(flanked(dims, axis), [(0, 0), pair, (0, 0)])] if any(pair) else []
            dims[axis] += sum(pair)
    name = source.name
    for seen, padding in steps:
        name = build.shaped(name, seen)
        sums = zip(seen, padding, strict=True)
        made = build.like(f"{name}_padded", source, tuple(n + a + b for n, (a, b) in sums))
        label, around = f"{build.label}_{len(build.operators)}", tuple(padding)
        build.operators.append(Pad(label, (name,), made, padding=around, value=value))
        name = made
    build.become(node.output, name)


def dequantize(build: Builder, node: Node, options: Options) -> None:
    """At the model's end: left out, the network gives the integers and their scale."""
    source = build.source(node.input(0))
    build.outputs[node.output.index] = source.name


OPERATORS = {
    "RESHAPE": Entry(reshape, reads=1),
    "SQUEEZE": Entry(reshape, reads=1),
    "EXPAND_DIMS": Entry(reshape, reads=1),
    "CONCATENATION": Entry(concatenation, "ConcatenationOptions", "axis:i32 activation:i8"),
    "PAD": Entry(pad),
    "PADV2": Entry(pad),
    "DEQUANTIZE": Entry(dequantize),
}
