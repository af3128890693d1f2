"""Functions of one int8 value, each as a table of its 256 results.

Source of the arithmetic: tflite-micro's reference kernels (integer_ops/logistic.h and tanh.h,
hard_swish.h, leaky_relu.h, activations.h, requantize.h), carried out here in their integers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, frexp, log2

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ThimbleError
from pipeline.graph import exponential
from pipeline.graph.operator import Clip
from pipeline.graph.operators.lookup import Interpolate, Lookup
from pipeline.graph.operators.pairwise import Prelu
from pipeline.graph.requant import FixedPoint, rounded_shift
from pipeline.graph.tensor import IntArray
from pipeline.importers.tflite_builder import ANY, Builder
from pipeline.importers.tflite_model import FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, stored
from pipeline.importers.tflite_pooling import same_quantization

Floats = NDArray[np.float32]
Q4 = 4
"""Integer bits of the argument of sigmoid and tanh."""


def _lookup(
    build: Builder,
    node: Node,
    function: Callable[[IntArray], IntArray],
    kinds: tuple[str, ...] = ("INT8",),
) -> None:
    """``function`` maps stored integers less their zero point to stored integers."""
    source, target = build.source(node.input(0), kinds), build.target(node.output, kinds)
    each = np.arange(source.dtype.minimum, source.dtype.maximum + 1, dtype=np.int64)
    values = target.dtype.clip(function(each - source.zero_point))
    build.emit(Lookup, [source.name], target.name, table=tuple(int(value) for value in values))


def wide(build: Builder, node: Node, below: FixedPoint, sign: int = 1, clip: Clip = None) -> None:
    """Bring int16 to the output's scale; what is below 0 by another factor."""
    source, target = build.source(node.input(0), ("INT16",)), build.target(node.output, ANY)
    held = build.constant(f"{node.name}_sign", np.array([sign], np.int8), "int8", (1.0,)).name
    given = {"parameters": (held,), "requant": _ratio(node), "below": below, "clip": clip}
    operands = source.name, held
    build.emit(Prelu, [source.name], target.name, operands=operands, **given)


def _lines(build: Builder, node: Node, tanh: bool) -> None:
    """TFLite's int16 LOGISTIC and TANH, which is 2 sigmoid(2x) - 1: lines between values of sigmoid
    at every 1/24, each nearer to the curve's middle by half of what lines are off there."""
    source, scale = build.source(node.input(0), ("INT16",)), node.input(0).scale
    prescribed(node.input(0), scale, 0)
    prescribed(node.output, 2.0**-15, 0)
    power, shift = round(log2(scale)), 0
    if power in (-12, -12 + tanh) and abs(log2(scale) - power) < 1e-3:  # CheckedLog2
        scale = 2.0**power
    factor = scale * 3 * 4096
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    if factor >= 1 << 16:
        raise ThimbleError(f"its input's scale {scale:g} is too large for 16 bits")
    near = [value - (1 << 15) for value in exponential.sigmoid_points()[1:]]
    above = [*near, 32767 if tanh else 32766]
    table = (*(-value for value in reversed(above)), 0, *above)
    interval, narrow, offset = (8, 8, 0) if tanh else (9, 10, 1 << 24)
    build.emit(
        Interpolate, [source.name], build.target(node.output, ("INT16",)).name, table=table,
        multiplier=int(factor), shift=shift, interval=interval, narrow=narrow, offset=offset,
        odd=True, end=1,
    )  # fmt: skip


def logistic(build: Builder, node: Node, options: Options) -> None:
    """Output of scale 1/256 and zero point -128, as TFLite prescribes, of int16 1/32768 and 0; of
    uint8, any."""
    if node.input(0).type == "INT16":
        return _lines(build, node, tanh=False)
    if node.output.unsigned:
        return rounded_table(build, node, lambda x: np.float32(1) / (np.float32(1) + np.exp(-x)))
    prescribed(node.output, 1 / 256, -128)

    def sigmoid(x: IntArray) -> IntArray:
        argument, beyond = _argument(x, node.input(0).scale)
        positive = exponential.one_over_one_plus(exponential.exp_of_negative(-np.abs(argument), Q4))
        share = np.where(argument > 0, positive, exponential.ONE - positive)
        share = np.where(argument == 0, 1 << 30, share)
        found = rounded_shift(share, 31 - 8) - 128
        return np.where(beyond, np.where(x > 0, 127, -128), found)

    _lookup(build, node, sigmoid)


def tanh(build: Builder, node: Node, options: Options) -> None:
    """Output of scale 1/128 and zero point 0, as TFLite prescribes, of int16 1/32768; of uint8,
    any."""
    if node.input(0).type == "INT16":
        return _lines(build, node, tanh=True)
    if node.output.unsigned:
        return rounded_table(build, node, np.tanh)
    prescribed(node.output, 1 / 128, 0)

    def hyperbolic(x: IntArray) -> IntArray:
        argument, beyond = _argument(x, node.input(0).scale)
        # twice the argument: the same integer with one integer bit more
        power = exponential.exp_of_negative(-np.abs(argument), Q4 + 1)
        size = np.where(argument == 0, 0, exponential.one_minus_over_one_plus(power))
        found = rounded_shift(np.sign(argument) * size, 31 - 7)
        return np.where(beyond, np.where(x > 0, 127, -128), found)

    _lookup(build, node, hyperbolic)


def by_table(build: Builder, node: Node, source: str, values: IntArray) -> None:
    """``values``: stored integers, not limited, for each of the integers of ``source``."""
    target = build.target(node.output)
    table = tuple(int(value) for value in target.dtype.clip(values))
    build.emit(Lookup, [build.shaped(source, target.shape)], target.name, table=table)


def nearest(steps: Floats) -> IntArray:
    """Round halves away from zero; what is no number becomes the least, as x86 casts it."""
    far = np.nan_to_num(steps, nan=-np.inf).clip(-(2.0**30), 2.0**30)
    found: IntArray = np.trunc(far + np.copysign(np.float32(0.5), far)).astype(np.int64)
    return found


def rounded_table(build: Builder, node: Node, function: Callable[[Floats], Floats]) -> None:
    """``function`` of real values, in float32: TFLite's PopulateLookupTable."""
    scale, inverse = np.float32(node.input(0).scale), 1 / np.float32(node.output.scale)
    out = node.output.zero_point

    def table(x: IntArray) -> IntArray:
        with np.errstate(all="ignore"):
            return nearest(function(scale * x.astype(np.float32)) * inverse) + out

    _lookup(build, node, table)


def prescribed(tensor: FileTensor, scale: float, zero_point: int) -> None:
    if (tensor.scale, tensor.zero_point) != (scale, zero_point):
        raise ThimbleError(
            f"its output has the scale {tensor.scale:g} and the zero point {tensor.zero_point}, "
            f"expected {scale:g} and {zero_point}"
        )


def _argument(x: IntArray, scale: float) -> tuple[IntArray, NDArray[np.bool_]]:
    """``scale * x`` in Q4.27, and where that is beyond what the format holds."""
    factor = scale * (1 << (31 - Q4))
    radius = floor(((1 << Q4) - 1) * (1 << (31 - Q4)) / 2.0 ** frexp(factor)[1])
    beyond = np.abs(x) >= radius
    if beyond.all():
        return np.zeros_like(x), beyond
    return FixedPoint.of([factor]).apply(np.where(beyond, 0, x)), beyond


def hard_swish(build: Builder, node: Node, options: Options) -> None:
    """In TFLite's 16-bit arithmetic."""
    fine = node.input(0).scale / 128
    out, gate = FixedPoint.of([fine / node.output.scale]), FixedPoint.of([fine * 32768 / 3])
    if not (-15 <= out.shifts[0] <= 0 and gate.shifts[0] >= -15):
        raise ThimbleError("the scales of its input and output differ too much for 16 bits")

    def swish(x: IntArray) -> IntArray:
        high = x << 7
        value = _high16(high, _upper(out))
        shift = gate.shifts[0]
        if shift > 0:
            share = _saturated16(_high16(_saturated16(high << (shift - 1)), _upper(gate)) << 1)
        else:
            share = rounded_shift(_high16(high, _upper(gate)), -shift)
        share = (share + (1 << 15)) >> 1  # [-1, 1] -> [0, 1]
        product = share * value
        truncated = np.where(product >= 0, product >> 15, -(-product >> 15))
        return rounded_shift(truncated, -out.shifts[0]) + node.output.zero_point

    _lookup(build, node, swish)


def _upper(factor: FixedPoint) -> int:
    """Return the upper half of a multiplier, rounded: DownScaleInt32ToInt16Multiplier."""
    return min((factor.multipliers[0] + (1 << 15)) >> 16, (1 << 15) - 1)


def _high16(a: IntArray, b: int) -> IntArray:
    """gemmlowp's SaturatingRoundingDoublingHighMul of 16 bits, for b >= 0."""
    nudged = a * b + np.where(a >= 0, 1 << 14, 1 - (1 << 14))
    return np.where(nudged >= 0, nudged >> 15, -(-nudged >> 15))


def _saturated16(a: IntArray) -> IntArray:
    return np.clip(a, -(1 << 15), (1 << 15) - 1)


def leaky_relu(build: Builder, node: Node, options: Options) -> None:
    """To any quantization; the slope may be negative."""
    scale, out = node.input(0).scale, node.output.scale
    slope = scale * options["alpha"] / out
    straight, leak = FixedPoint.of([scale / out]), FixedPoint.of([abs(slope)])
    if node.input(0).type == "INT16":
        return wide(build, node, leak, -1 if slope < 0 else 1)

    def leaky(x: IntArray) -> IntArray:
        below = leak.apply(x) * (-1 if slope < 0 else 1)
        return np.where(x >= 0, straight.apply(x), below) + node.output.zero_point

    _lookup(build, node, leaky)


def relu(build: Builder, node: Node, options: Options) -> None:
    """On its own, to any quantization; fused ones are part of the operator before."""
    requant = _ratio(node)
    low = stored(0.0, node.output)
    if node.input(0).type == "INT16":
        return wide(build, node, FixedPoint((0,), (0,)))
    _lookup(build, node, lambda x: np.maximum(requant.apply(x) + node.output.zero_point, low))


def _ratio(node: Node) -> FixedPoint:
    """Return the factor from the input's scale to the output's, of uint8 in float32."""
    kind = np.float32 if node.output.unsigned else float
    return FixedPoint.of([float(kind(node.input(0).scale) / kind(node.output.scale))])


def relu_n1_to_1(build: Builder, node: Node, options: Options) -> None:
    """On its own, to any quantization, as TFLite does it; tflite-micro has fused ones only."""
    requant = _ratio(node)
    zero, low, high = (stored(value, node.output) for value in (0.0, -1.0, 1.0))
    _lookup(build, node, lambda x: np.clip(requant.apply(x) + zero, low, high))


def relu6(build: Builder, node: Node, options: Options) -> None:
    """On its own, as tflite-micro does it: the input's integers, whatever the output's scale; of
    int16 in one quantization. Fused ones are part of the operator before."""
    zero, high = node.input(0).zero_point, stored(6.0, node.input(0))
    if node.input(0).type == "INT16":
        same_quantization(node.input(0), node.output)
        return wide(build, node, FixedPoint((0,), (0,)), clip=(0, min(high, 32767)))
    _lookup(build, node, lambda x: np.clip(x + zero, zero, high))


def quantize(build: Builder, node: Node, options: Options) -> None:
    """Convert int8, uint8 or int16 to any of them. From float at the model's start: left out, the
    network takes the integers."""
    given = node.input(0)
    if given.type == "FLOAT32":
        if given.index not in build.sources or given.index in build.inputs:
            raise ThimbleError(f"{given.name} is a float32 result, and only int8 is supported")
        build.inputs[given.index] = build.target(node.output, ANY).name
        return
    requant = FixedPoint.of([given.scale / node.output.scale])
    zero = node.output.zero_point
    if given.type == "INT16":
        return wide(build, node, requant)
    _lookup(build, node, lambda x: requant.apply(x) + zero, ANY)


OPERATORS = {
    "LOGISTIC": Entry(logistic),
    "TANH": Entry(tanh),
    "HARD_SWISH": Entry(hard_swish),
    "LEAKY_RELU": Entry(leaky_relu, "LeakyReluOptions", "alpha:f32"),
    "RELU": Entry(relu),
    "RELU6": Entry(relu6),
    "RELU_N1_TO_1": Entry(relu_n1_to_1),
    "QUANTIZE": Entry(quantize),
}
