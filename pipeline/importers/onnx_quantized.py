"""QuantizeLinear, DequantizeLinear, and the operators that take integers themselves.

uint8 activations are stored as int8, 128 less: the same real values; uint16 as int16, likewise.
"""

from __future__ import annotations

from functools import partial
from math import isfinite

import numpy as np
from onnx import TensorProto

from pipeline.importers import float_nodes as nodes
from pipeline.importers.arithmetic import arithmetic
from pipeline.importers.float_graph import Affine
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.onnx_call import SHIFT, Call, Constant, Item, Stored, Table, scalar
from pipeline.importers.onnx_pooling import averaged, globally
from pipeline.importers.onnx_shapes import concatenated, softmax_of
from pipeline.importers.onnx_weighted import convolved, matrix, product

NAMED: dict[int, type[np.generic]] = {
    TensorProto.UINT8: np.uint8, TensorProto.INT8: np.int8,
    TensorProto.UINT16: np.uint16, TensorProto.INT16: np.int16,
}  # fmt: skip
"""Types of activations."""


def quantization(
    call: Call, scale: int, zero: int, without: type[np.generic] = np.uint8
) -> tuple[Affine, bool]:
    """The scale and zero point at these inputs: (of signed integers, whether the source's are not).

    ``without``: the type where no zero point says it.
    """
    step, point = call.constant(scale), call.optional(zero)
    if step.values.size != 1:
        raise call.refuse("activations quantized for each channel are not supported")
    kind = np.dtype(without) if point is None else point.values.dtype
    if kind.type not in NAMED.values():
        raise call.refuse(
            f"activations of type {kind} are not supported; those of 8 or 16 bits are"
        )
    unsigned, bits = kind.kind == "u", 8 * kind.itemsize
    zero_point = int(scalar(call, zero, 0.0)) - (SHIFT << bits - 8 if unsigned else 0)
    found = float(step.floats.reshape(-1)[0])
    if not (isfinite(found) and found > 0):
        raise call.refuse(f"the scale {found} is not positive")
    return Affine(found, zero_point, bits), unsigned


def quantize(call: Call) -> Item:
    """Quantize an activation; a weight that the file quantizes is computed at once."""
    named = call.integer("output_dtype", TensorProto.UINT8) or TensorProto.UINT8
    if named not in NAMED:
        raise call.refuse(f"its output_dtype {named} has neither 8 nor 16 bits")
    affine, unsigned = quantization(call, 1, 2, NAMED[named])
    found = call.item(0)
    if isinstance(found, Constant):
        limits = np.iinfo(f"{'u' if unsigned else ''}int{affine.bits}")
        zero_point = affine.zero_point + (SHIFT << affine.bits - 8 if unsigned else 0)
        stored = np.rint(found.floats / affine.scale) + zero_point
        return Constant(np.clip(stored, limits.min, limits.max).astype(limits.dtype))
    return Stored(call.builder.mark(call.x, affine), affine, unsigned)


def real(call: Call, index: int, scale: int, zero: int) -> Value:
    """Return the activation at input ``index``, stored with the quantization at these inputs."""
    found = call.item(index)
    if not isinstance(found, Stored):
        raise call.refuse(f"input {index} is not a quantized activation")
    affine, unsigned = quantization(call, scale, zero, np.uint8 if found.unsigned else np.int8)
    x, known = found.value, found.affine
    if unsigned != found.unsigned or (known and known.bits != affine.bits):
        raise call.refuse("integers are taken for those of another type, such as int8 for uint8")
    if known is None:
        known = call.builder.given.setdefault(x.tensor, affine)
    if known == affine:
        return x
    factor = affine.scale / known.scale
    offset = affine.scale * (known.zero_point - affine.zero_point)
    result = call.builder.function(x, Composed.of("affine", factor, offset))
    call.builder.given[result.tensor] = affine
    return result


def weights(call: Call, index: int, scale: int, zero: int, axis: int) -> Constant:
    """Real values of a constant, with its steps on ``axis``."""
    stored, step, point = call.constant(index), call.constant(scale), call.optional(zero)
    shape: tuple[int, ...] = ()
    if step.values.size != 1:
        axis = call.axis(axis, max(1, stored.values.ndim))
        if stored.values.ndim == 0 or step.values.shape != (stored.values.shape[axis],):
            raise call.refuse(f"{step.values.size} scales for {list(stored.values.shape)}")
        shape = tuple(-1 if d == axis else 1 for d in range(stored.values.ndim))
    steps = step.floats.reshape(shape)
    if not (np.isfinite(steps).all() and (steps > 0).all()):
        raise call.refuse("has scales that are not positive")
    zeros = np.zeros(()) if point is None else point.floats
    if zeros.size not in (1, step.values.size):
        raise call.refuse(f"{zeros.size} zero points for {step.values.size} scales")
    zeros = zeros.reshape(shape if zeros.size > 1 else ())
    if stored.values.dtype.kind not in "iu":
        raise call.refuse("dequantizes what is not integers")
    return Constant(steps * (stored.floats - zeros), steps)


def dequantize(call: Call) -> Item:
    if isinstance(call.item(0), Constant):
        return weights(call, 0, 1, 2, call.integer("axis", 1))
    return real(call, 0, 1, 2)


def stored(call: Call, result: Value, scale: int, zero: int) -> Stored:
    """``result`` as the integers of the quantization at these inputs."""
    affine, unsigned = quantization(call, scale, zero)
    return Stored(call.builder.mark(result, affine), affine, unsigned)


def bias_of(call: Call, index: int, steps: Constant) -> Constant | None:
    """int32 biases: multiples of the scale of input 0 x weight scale."""
    found = call.optional(index)
    if found is None:
        return None
    assert steps.steps is not None
    unit = quantization(call, 1, 2)[0].scale * steps.steps.reshape(-1)
    if unit.size not in (1, found.values.size):
        raise call.refuse(f"{found.values.size} biases for weights with {unit.size} scales")
    return Constant(found.floats.reshape(-1) * unit)


def conv(call: Call) -> Item:
    """QLinearConv: x, its scale and zero point, weights, theirs, the output's, bias."""
    x, kernel = real(call, 0, 1, 2), weights(call, 3, 4, 5, 0)
    return stored(call, convolved(call, x, kernel, bias_of(call, 8, kernel)), 6, 7)


def matmul(call: Call) -> Item:
    x, held = real(call, 0, 1, 2), matrix(call, weights(call, 3, 4, 5, 1))
    return stored(call, product(call, x, held, None), 6, 7)


def gemm(call: Call) -> Item:
    """QGemm: its bias precedes the output's scale."""
    turned = bool(call.integer("transB", 0))
    x, given = real(call, 0, 1, 2), weights(call, 3, 4, 5, 0 if turned else 1)
    if call.integer("transA", 0) or call.number("alpha", 1.0) != 1:
        raise call.refuse("with transA or alpha it is not supported")
    bias, held = bias_of(call, 6, given), matrix(call, given, turned)
    offsets = None if bias is None else bias.floats
    if offsets is not None and offsets.size != len(held.values):
        raise call.refuse(f"{offsets.size} biases for {len(held.values)} outputs")
    return stored(call, product(call, x, held, offsets), 7, 8)


def binary(call: Call, name: str) -> Item:
    a, b = (
        weights(call, n, n + 1, n + 2, 0).floats
        if isinstance(call.item(n), Constant)
        else real(call, n, n + 1, n + 2)
        for n in (0, 3)
    )
    return stored(call, arithmetic(call.builder, name, a, b), 6, 7)


def dynamic(call: Call) -> list[Item]:
    """Leave to later how the activation is quantized: the real values, in units of 1."""
    return [call.x, Constant(np.ones(())), Constant(np.zeros((), np.uint8))]


def plain_weights(call: Call) -> Constant:
    """Integers at input 1 less their zero points, which are multiples of 1; the activation has
    none."""
    zeros, points = call.optional(2), call.optional(3)
    if zeros is not None and zeros.values.any():
        raise call.refuse("an activation with a zero point of its own is not supported")
    values = call.constant(1).floats - (0 if points is None else points.floats)
    return Constant(values, np.ones(()) if np.abs(values).max(initial=0) <= 127 else None)


def average(call: Call) -> Item:
    """QLinearAveragePool, QLinearGlobalAveragePool: channels first."""
    if call.integer("channels_last", 0):
        raise call.refuse("channels_last is not supported")
    x = real(call, 0, 1, 2)
    if "Global" in call.node.operator:
        return stored(call, globally(call, nodes.AveragePool, x), 3, 4)
    return stored(call, averaged(call, x), 3, 4)


def function(call: Call, name: str, **attributes: float) -> Item:
    constants = [call.number(key, value) for key, value in attributes.items()]
    result = call.builder.function(real(call, 0, 1, 2), Composed.of(name, *constants))
    return stored(call, result, 3, 4)


def concat(call: Call) -> Item:
    """QLinearConcat: the output's scale and zero point, then three inputs for each part."""
    parts = [real(call, i, i + 1, i + 2) for i in range(2, len(call.items) - 2, 3)]
    return stored(call, concatenated(call, parts), 0, 1)


def softmax(call: Call) -> Item:
    """QLinearSoftmax, which says itself which opset's softmax it is."""
    result = softmax_of(call, real(call, 0, 1, 2), call.integer("opset", call.opset))
    return stored(call, result, 3, 4)


OPERATORS: Table = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "ConvInteger": lambda call: convolved(call, call.x, plain_weights(call), None),
    "MatMulInteger": lambda call: product(call, call.x, matrix(call, plain_weights(call)), None),
    "QLinearConv": conv,
    "QLinearMatMul": matmul,
    "QGemm": gemm,
    "QLinearAdd": partial(binary, name="add"),
    "QLinearMul": partial(binary, name="mul"),
    "QLinearAveragePool": average,
    "QLinearGlobalAveragePool": average,
    "QLinearSigmoid": partial(function, name="sigmoid"),
    "QLinearLeakyRelu": partial(function, name="leaky_relu", alpha=0.01),
    "QLinearConcat": concat,
    "QLinearSoftmax": softmax,
}
