"""Random networks of one operator each, for every operator that the importer supports.

Scales are such that results fill the output's range without saturating everywhere.
"""

from functools import partial
from math import prod
from typing import Any

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.Padding import Padding

from tests.importers.tflite_cells import lstm, svdf
from tests.importers.tflite_reals import COMPARED, NUMBERS, REAL, extreme, real
from tests.importers.tflite_slices import SLICES
from tests.importers.tflite_writer import Case, Random, Writer, scale, sizes, zero

ACTIVATIONS = [
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.RELU_N1_TO_1,
]


def activation(rng: Random) -> int:
    return int(rng.choice(ACTIVATIONS))


def window(rng: Random, extents: tuple[int, int], same: bool, d: tuple[int, int] = (1, 1)) -> Any:
    """(kernel, stride, output extents) as TensorFlow has them."""
    kernel, stride, out = [], [], []
    for extent, dilation in zip(extents, d, strict=True):
        fits = (extent - 1) // dilation + 1
        k = int(rng.integers(1, 6 if same else min(5, fits), endpoint=True))
        s = int(rng.integers(1, 4))
        span = (k - 1) * dilation + 1
        kernel.append(k)
        stride.append(s)
        out.append(-(-extent // s) if same else (extent - span) // s + 1)
    return kernel, stride, out


def weight_scales(rng: Random, channels: int) -> Any:
    if rng.random() < 0.3:
        return scale(rng, 0.002, 0.02)
    return [scale(rng, 0.002, 0.02) for _ in range(channels)]


def nibbles(values: np.ndarray) -> np.ndarray:
    """4-bit integers, two a byte, low half first."""
    flat = np.append(values, np.int8(0))[: values.size + values.size % 2] & np.int8(15)
    return flat[0::2] | flat[1::2] << 4


def weights(
    net: Writer, rng: Random, dims: tuple[int, ...], scales: Any, axis: int, packed: bool
) -> int:
    """Random ones, ``packed`` of 4 bits."""
    most = 7 if packed else 127
    values = rng.integers(-most, most + 1, dims).astype(np.int8)
    kind, held = ("INT4", nibbles(values)) if packed else ("INT8", values)
    return net.tensor(dims, scales, 0, kind, held, axis)


def conv_2d(rng: Random) -> bytes:
    groups = int(rng.choice([1, 1, 2, 3]))
    height, width, depth = sizes(rng, channels=4)
    per_group = int(rng.integers(1, 5))
    return convolution(rng, (height, width, depth * groups), per_group * groups, groups)


def depthwise_conv_2d(rng: Random) -> bytes:
    shape = sizes(rng, channels=5)
    return convolution(rng, shape, shape[2] * int(rng.integers(1, 4)), 0)


def convolution(rng: Random, shape: tuple[int, int, int], outs: int, groups: int) -> bytes:
    same = bool(rng.integers(2))
    dilation = (1, 1) if rng.random() < 0.5 else tuple(int(d) for d in rng.integers(1, 4, 2))
    kernel, stride, _ = window(rng, shape[:2], same, dilation)
    net = Writer()
    x = net.tensor((1, *shape), scale(rng), zero(rng))
    y = convolved(net, rng, x, outs, groups, kernel, stride, dilation, same, activation(rng))
    return net.content([x], [y])


def convolved(
    net: Writer, rng: Random, x: int, outs: int, groups: int = 1, kernel: Any = (3, 3),
    stride: Any = (1, 1), dilation: Any = (1, 1), same: bool = True,
    activation: int = ActivationFunctionType.RELU,
) -> int:  # fmt: skip
    """The output's number; of 0 groups it is depthwise."""
    *extents, channels = net.tensors[x]["dims"][1:]
    dims = (outs, *kernel, channels // groups) if groups else (1, *kernel, outs)
    beyond = [0 if same else (k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    out = [-(-(n - b) // s) for n, b, s in zip(extents, beyond, stride, strict=True)]
    taps, scales = np.prod(dims) / outs, weight_scales(rng, outs)
    packed = rng.random() < 0.15
    inputs = [x, weights(net, rng, dims, scales, 0 if groups else 3, packed)]
    if rng.random() < 0.8:
        spread = int(127 * 74 * np.sqrt(taps))
        inputs.append(net.constant(rng.integers(-spread, spread, outs).astype(np.int32), 1.0))
    product = float(net.tensors[x]["scales"][0]) * float(np.mean(scales))
    y = net.tensor((1, *out, outs), product * 74 * np.sqrt(taps) * rng.uniform(0.2, 2), zero(rng))
    kind, options, more = "CONV_2D", "Conv2DOptions", {}
    if not groups:
        kind, options = "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"
        more = {"DepthMultiplier": outs // channels}
    net.operator(
        kind, inputs, [y], options, Padding=Padding.SAME if same else Padding.VALID,
        StrideH=stride[0], StrideW=stride[1], DilationHFactor=dilation[0],
        DilationWFactor=dilation[1], FusedActivationFunction=activation, **more,
    )  # fmt: skip
    return y


def dilated(rng: Random, ahead: int = 0) -> bytes:
    """A convolution of blocks, as TensorFlow had dilated ones; ``ahead``: that many rows and
    columns are padded on each side, with what is undefined in tflite-micro."""
    net, channels, outs = Writer(), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    apart, kernel, more = rng.integers(1, 4, (3, 2)).tolist()
    small = [taps - 1 + n for taps, n in zip(kernel, more, strict=True)]
    pads, crops = [(ahead, ahead)] * 2, [(0, min(ahead, each - 1)) for each in apart]
    whole = [each * n - 2 * ahead for each, n in zip(apart, small, strict=True)]
    ends, step = ((1, *whole), (prod(apart), *small)), scale(rng)
    x, blocks = (net.tensor((*n, channels), step, ahead) for n in ends)
    size, around, cut = map(net.ints, (apart, pads, crops))
    net.operator("SPACE_TO_BATCH_ND", [x, size, around], [blocks], "SpaceToBatchNDOptions")
    depthwise = bool(rng.integers(2))
    outs *= channels if depthwise else 1
    made = convolved(net, rng, blocks, outs, not depthwise, kernel, same=False)
    found = net.tensors[made]
    found["dims"] = (prod(apart), *more, outs)
    dims = [n * each - last for n, each, (_, last) in zip(more, apart, crops, strict=True)]
    y = net.tensor((1, *dims, outs), found["scales"], found["zeros"])
    net.operator("BATCH_TO_SPACE_ND", [made, size, cut], [y], "BatchToSpaceNDOptions")
    return net.content([x], [y])


def transpose_conv(rng: Random) -> bytes:
    (*extents, depth), same = sizes(rng, 6, 5), bool(rng.integers(2))
    (kernel, stride), outs = rng.integers(1, 5, (2, 2)).tolist(), int(rng.integers(1, 6))
    made = [
        n * s - int(rng.integers(s)) if same else (n - 1) * s + k + int(rng.integers(s))
        for n, s, k in zip(extents, stride, kernel, strict=True)
    ]
    net, scales = Writer(), weight_scales(rng, outs)
    x = net.tensor((1, *extents, depth), scale(rng), zero(rng))
    values = rng.integers(-127, 128, (outs, *kernel, depth)).astype(np.int8)
    inputs = [net.ints([1, *made, outs]), net.constant(values, scales), x]
    if rng.random() < 0.7:
        inputs.append(net.constant(rng.integers(-9000, 9000, outs).astype(np.int32), 1.0))
    product = float(net.tensors[x]["scales"][0]) * float(np.mean(scales))
    y = net.tensor((1, *made, outs), product * 74 * np.sqrt(depth * np.prod(kernel)), zero(rng))
    net.operator(
        "TRANSPOSE_CONV", inputs, [y], "TransposeConvOptions", StrideH=stride[0],
        StrideW=stride[1], Padding=Padding.SAME if same else Padding.VALID,
    )  # fmt: skip
    return net.content([x], [y])


def batch_matmul(rng: Random) -> bytes:
    (count, rows, inner), net, turned = sizes(rng, 6), Writer(), rng.integers(0, 2, 2).tolist()
    x = net.tensor((1, count, rows, inner), s := scale(rng), z := zero(rng))
    other = (1, count, *((inner, rows) if turned[0] == turned[1] else (rows, inner)))
    net.operator("RESHAPE", [x, net.constant(np.array(other))], [y := net.tensor(other, s, z)])
    size, common = (inner, rows) if turned[0] else (rows, inner)
    made = net.tensor((1, count, size, size), s * s * 74 * np.sqrt(common), zero(rng))
    given = {"AdjX": turned[0], "AdjY": turned[1]}
    net.operator("BATCH_MATMUL", [x, y], [made], "BatchMatMulOptions", **given)
    return net.content([x], [made])


def fully_connected(rng: Random) -> bytes:
    outs, depth, rows = (int(n) for n in rng.integers(1, [20, 40, 4]))
    net, in_scale = Writer(), scale(rng)
    w_scales = weight_scales(rng, outs) if rng.random() < 0.5 else scale(rng, 0.002, 0.02)
    out_scale = in_scale * float(np.mean(w_scales)) * 74 * 74 * np.sqrt(depth) / 60
    if rows == 1:
        dims, result = (1, 1, 1, depth), (1, outs)
        dims = ((1, depth), dims, (depth,))[int(rng.integers(3))]
    else:
        dims, result = ((1, rows, depth), (1, rows, outs))
        if rng.random() < 0.5:
            dims, result = (1, rows, 2, depth), (1, rows, 2, outs)
    x = net.tensor(dims, in_scale, zero(rng))
    packed = np.ndim(w_scales) == 0 and rng.random() < 0.3
    inputs = [x, weights(net, rng, (outs, depth), w_scales, 0, packed)]
    if rng.random() < 0.8:
        bias = rng.integers(-30_000, 30_000, outs).astype(np.int32)
        inputs.append(net.constant(bias, in_scale * float(np.mean(w_scales))))
    y = net.tensor(result, out_scale / (16 if packed else 1), zero(rng))
    net.operator(
        "FULLY_CONNECTED", inputs, [y], "FullyConnectedOptions",
        FusedActivationFunction=activation(rng), KeepNumDims=rows > 1,
    )  # fmt: skip
    return net.content([x], [y])


def pool(kind: str, rng: Random) -> bytes:
    shape, same = sizes(rng), bool(rng.integers(2))
    kernel, stride, out = window(rng, shape[:2], same)
    net, s, z = Writer(), scale(rng), zero(rng)
    x, y = net.tensor((1, *shape), s, z), net.tensor((1, *out, shape[2]), s, z)
    return net.alone(
        kind, x, [], y, "Pool2DOptions", Padding=Padding.SAME if same else Padding.VALID,
        StrideH=stride[0], StrideW=stride[1], FilterHeight=kernel[0], FilterWidth=kernel[1],
        FusedActivationFunction=activation(rng),
    )  # fmt: skip


def reduction(kind: str, rng: Random) -> bytes:
    shape = (1, *sizes(rng))
    choices = [(1, 2), (2, 1), (1,), (2,), (3,), (-1,), (1, 2, 3), (-2, -3), (2, 3), (1, 3)]
    axes = choices[int(rng.integers(len(choices)))]
    keep = bool(rng.integers(2))
    reduced = {axis % 4 for axis in axes}
    out = [n if d not in reduced else 1 for d, n in enumerate(shape) if d not in reduced or keep]
    count = np.prod([shape[axis] for axis in axes]) if kind == "SUM" else 1
    net, s, z = Writer(), scale(rng), zero(rng)
    to = (s * float(np.sqrt(count)) * rng.uniform(0.3, 2), zero(rng))
    x, y = net.tensor(shape, s, z), net.tensor(out, *((s, z) if kind[:3] == "RED" else to))
    return net.alone(kind, x, [net.ints(axes)], y, "ReducerOptions", KeepDims=keep)


def places(kind: str, rng: Random) -> bytes:
    shape, axis, net = (1, *sizes(rng)), int(rng.integers(1, 4)), Writer()
    x = net.tensor(shape, scale(rng), zero(rng))
    y = net.tensor([n for d, n in enumerate(shape) if d != axis], [], 0, "INT32")
    axis -= 4 * int(rng.integers(2))
    return net.alone(
        kind, x, [net.ints(axis)], y, "ArgMaxOptions" if "X" in kind else "ArgMinOptions"
    )


def binary(kind: str, rng: Random) -> bytes:
    shape = (1, *sizes(rng, 5))
    other = [shape, (1, 1, 1, shape[3]), shape[3:], (1,), (1, *shape[1:3], 1), (1, shape[1], 1, 1)]
    second = other[int(rng.integers(len(other)))]
    if kind != "MUL" and rng.random() < 0.3:
        second = ((1,), (1, 1, 1, 1), ())[int(rng.integers(3))]
    a_scale, b_scale = scale(rng), scale(rng) * (1 if rng.random() < 0.8 else 0.01)
    if rng.random() < 0.2:
        b_scale = a_scale
    pair = (0, 1) if rng.random() < 0.5 else (1, 0)
    if kind == "SUB":  # a ratio with which every value is rounded as its negative is
        a_scale = float(rng.integers(20, 800)) / 4096
        b_scale = a_scale * float(rng.integers(1, 129)) / 128
    out = max(a_scale, b_scale) * rng.uniform(0.3, 2.5)
    if kind == "MUL":
        out = a_scale * b_scale * rng.uniform(20, 150)
    net = Writer()
    a = net.tensor(shape, a_scale, zero(rng))
    # a second activation comes from the same input
    if rng.random() < 0.1 and kind != "MUL":
        b = a
    elif rng.random() < 0.5 or np.prod(second) == 1:
        b = net.constant(np.asarray(rng.integers(-128, 128, second), np.int8), b_scale, zero(rng))
    else:
        b = net.tensor(shape, b_scale, zero(rng))
        net.operator("QUANTIZE", [a], [b])
        if second != shape and second[1:3] == (1, 1):
            b = pooled(net, b, shape)
    y = net.tensor(shape, out, zero(rng))
    given = [(a, b)[i] for i in pair], [y], f"{kind.title()}Options"
    net.operator(kind, *given, FusedActivationFunction=activation(rng))
    return net.content([a], [y])


def pooled(net: Writer, source: int, shape: tuple[int, ...]) -> int:
    """The maximum of each channel: a squeeze."""
    like = net.tensors[source]
    y = net.tensor((1, 1, 1, shape[3]), like["scales"], like["zeros"])
    net.operator(
        "MAX_POOL_2D", [source], [y], "Pool2DOptions", Padding=Padding.VALID, StrideH=1, StrideW=1,
        FilterHeight=shape[1], FilterWidth=shape[2],
    )  # fmt: skip
    return y


def unary(
    kind: str, rng: Random, in_high: float = 0.2, out: tuple[float, int] | None = None
) -> bytes:
    """A function of one value; ``out`` is the scale and zero point that TFLite prescribes."""
    net, s, z = Writer(), scale(rng, 0.001, in_high), -128 if kind == "RSQRT" else zero(rng)
    dims = (1, 300) if rng.random() < 0.5 and kind[:2] != "L2" else (1, 10, 5, 6)
    x = net.tensor(dims, s, z)
    same = kind in ("RELU6",) or rng.random() < 0.2
    y_scale, y_zero = out or ((s, z) if same else (s * rng.uniform(0.5, 2), zero(rng)))
    if kind == "RSQRT":
        y_scale = s**-0.5 * rng.uniform(0.0005, 0.01)
    if kind == "HARD_SWISH":  # TFLite demands a factor of at most 1
        y_scale = s * rng.uniform(0.3, 2)
    y = net.tensor(dims, y_scale, y_zero)
    options, more = "", {}
    if kind == "LEAKY_RELU":
        options, more = "LeakyReluOptions", {"Alpha": float(rng.uniform(-0.5, 1.5))}
    if kind == "SOFTMAX":
        options, more = "SoftmaxOptions", {"Beta": 1.0 if rng.random() < 0.7 else 0.5}
    return net.alone(kind, x, [], y, options, **more)


def prelu(rng: Random) -> bytes:
    net, s, z = Writer(), scale(rng), zero(rng)
    dims = (1, 10, 5, 6)
    x = net.tensor(dims, s, z)
    y = net.tensor(dims, s * rng.uniform(0.5, 2), zero(rng))
    shape = ((1, 1, 6), (6,), (10, 5, 6), (1, 1, 1))[int(rng.integers(4))]
    slopes = rng.integers(-128, 128, shape).astype(np.int8)
    return net.alone("PRELU", x, [net.constant(slopes, rng.uniform(0.001, 0.01), zero(rng))], y)


def quantize(rng: Random) -> bytes:
    net, s = Writer(), scale(rng)
    x = net.tensor((1, 300), s, zero(rng))
    y = net.tensor((1, 300), s * rng.uniform(0.3, 3), zero(rng))
    return net.alone("QUANTIZE", x, [], y, "QuantizeOptions")


CASES: dict[str, Case] = {
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    **dict.fromkeys(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), dilated),
    "TRANSPOSE_CONV": transpose_conv,
    "BATCH_MATMUL": batch_matmul,
    "FULLY_CONNECTED": fully_connected,
    "AVERAGE_POOL_2D": partial(pool, "AVERAGE_POOL_2D"),
    "MAX_POOL_2D": partial(pool, "MAX_POOL_2D"),
    "MEAN": partial(reduction, "MEAN"),
    "SUM": partial(reduction, "SUM"),
    **{kind: partial(places, kind) for kind in ("ARG_MAX", "ARG_MIN")},
    "REDUCE_MAX": partial(reduction, "REDUCE_MAX"),
    "REDUCE_MIN": partial(reduction, "REDUCE_MIN"),
    "ADD": partial(binary, "ADD"),
    "SUB": partial(binary, "SUB"),
    "MUL": partial(binary, "MUL"),
    "PRELU": prelu,
    "MAXIMUM": partial(extreme, "MAXIMUM"),
    "MINIMUM": partial(extreme, "MINIMUM"),
    "SQUARED_DIFFERENCE": partial(extreme, "SQUARED_DIFFERENCE"),
    **{kind: partial(real, kind) for kind in (*REAL, *NUMBERS, *COMPARED)},
    **{kind: partial(unary, kind) for kind in ("ABS", "ELU", "RSQRT", "HARD_SWISH", "LEAKY_RELU")},
    "SOFTMAX": partial(unary, "SOFTMAX", in_high=2.0, out=(1 / 256, -128)),
    "LOG_SOFTMAX": partial(unary, "LOG_SOFTMAX", in_high=2.0, out=(1 / 16, 127)),
    "L2_NORMALIZATION": partial(unary, "L2_NORMALIZATION", out=(1 / 128, 0)),
    "LOGISTIC": partial(unary, "LOGISTIC", in_high=0.5, out=(1 / 256, -128)),
    "TANH": partial(unary, "TANH", in_high=0.5, out=(1 / 128, 0)),
    "RELU": partial(unary, "RELU"),
    "RELU6": partial(unary, "RELU6"),
    "QUANTIZE": quantize,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "SVDF": svdf,
    **SLICES,
}
