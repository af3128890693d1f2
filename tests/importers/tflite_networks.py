"""Random networks of many operators: a residual block, squeeze-excitation, a channel shuffle, a
classifier."""

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType

from tests.importers.tflite_cases import convolved
from tests.importers.tflite_writer import Random, Writer, scale, zero

NONE = ActivationFunctionType.NONE


def network(rng: Random) -> bytes:
    """int8, uint8 or float at its ends; flattened by a shape that is computed in the file."""
    net, ends = Writer(), ["INT8", "UINT8", "FLOAT32"][int(rng.integers(3))]
    dims = (1, *rng.integers(4, 9, 2).tolist(), 3)
    s, z = scale(rng), zero(rng)
    given = x = net.tensor(dims, s, z)
    if ends == "UINT8":
        given = net.tensor(dims, s, z + 128, "UINT8")
    if ends == "FLOAT32":
        given = net.tensor(dims, dtype="FLOAT32")
    if given != x:
        net.operator("QUANTIZE", [given], [x])
    stem = convolved(net, rng, x, 8, stride=(2, 2))
    wide = convolved(net, rng, stem, 12, kernel=(1, 1))
    gated = squeeze_excitation(net, rng, convolved(net, rng, wide, 12, groups=0))
    narrow = convolved(net, rng, swapped(net, gated), 8, kernel=(1, 1), activation=NONE)
    joined = same(net, stem, scale(rng), zero(rng))
    net.operator("ADD", [stem, narrow], [joined], "AddOptions")
    swished = same(net, joined, net.tensors[joined]["scales"], zero(rng))
    net.operator("HARD_SWISH", [joined], [swished])
    flat = flattened(net, swished)
    features = net.tensors[flat]["dims"][1]
    logits, y = net.tensor((1, 10), scale(rng), zero(rng)), net.tensor((1, 10), 1 / 256, -128)
    weights = net.constant(rng.integers(-127, 128, (10, features)).astype(np.int8), 0.01)
    net.operator("FULLY_CONNECTED", [flat, weights, -1], [logits], "FullyConnectedOptions")
    net.operator("SOFTMAX", [logits], [y], "SoftmaxOptions", Beta=1.0)
    result = y
    if ends == "UINT8":
        result = net.tensor((1, 10), 1 / 256, 0, "UINT8")
        net.operator("QUANTIZE", [y], [result])
    if ends == "FLOAT32":
        result = net.tensor((1, 10), dtype="FLOAT32")
        net.operator("DEQUANTIZE", [y], [result])
    return net.content([given], [result])


def same(net: Writer, tensor: int, s: object, z: object) -> int:
    return net.tensor(net.tensors[tensor]["dims"], s, z)


def squeeze_excitation(net: Writer, rng: Random, source: int) -> int:
    depth = net.tensors[source]["dims"][3]
    mean = net.tensor((1, 1, 1, depth), net.tensors[source]["scales"], zero(rng))
    net.operator("MEAN", [source, net.ints([1, 2])], [mean], "ReducerOptions", KeepDims=True)
    inner = convolved(net, rng, mean, 4, kernel=(1, 1))
    outer = convolved(net, rng, inner, depth, kernel=(1, 1), activation=NONE)
    gate = net.tensor((1, 1, 1, depth), 1 / 256, -128)
    net.operator("LOGISTIC", [outer], [gate])
    y = same(net, source, net.tensors[source]["scales"] * rng.uniform(0.4, 1), zero(rng))
    net.operator("MUL", [source, gate], [y], "MulOptions")
    return y


def swapped(net: Writer, source: int) -> int:
    """The second half of the channels before the first."""
    like = net.tensors[source]
    half = (*like["dims"][:3], like["dims"][3] // 2)
    parts = [net.tensor(half, like["scales"], like["zeros"]) for _ in range(2)]
    net.operator("SPLIT", [net.ints(-1), source], parts, "SplitOptions", NumSplits=2)
    y = same(net, source, like["scales"], like["zeros"])
    net.operator("CONCATENATION", parts[::-1], [y], "ConcatenationOptions", Axis=3)
    return y


def flattened(net: Writer, source: int) -> int:
    """As Keras' Flatten arrives: SHAPE, STRIDED_SLICE and PACK compute what RESHAPE takes."""
    like = net.tensors[source]
    size = int(np.prod(like["dims"]))
    shape = net.tensor((4,), dtype="INT32")
    net.operator("SHAPE", [source], [shape], "ShapeOptions")
    limits, options = map(net.ints, ([0], [1], [1])), {"ShrinkAxisMask": 1}
    batch, packed = net.tensor((), dtype="INT32"), net.tensor((2,), dtype="INT32")
    net.operator("STRIDED_SLICE", [shape, *limits], [batch], "StridedSliceOptions", **options)
    net.operator("PACK", [batch, net.ints(size)], [packed], "PackOptions", ValuesCount=2)
    y = net.tensor((1, size), like["scales"], like["zeros"])
    net.operator("RESHAPE", [source, packed], [y])
    return y
