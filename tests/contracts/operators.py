"""A random case of each operator: itself, its tensors, and values for all that it reads.

An operator is listed in ``MAKERS`` by its class; the contract in test_operators.py does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pipeline.graph.exponential import exponentials
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.concat import Concat
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.multiply import Multiply
from pipeline.graph.operators.pad import Pad
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.operators.prelu import Prelu
from pipeline.graph.operators.rearrange import Rearrange
from pipeline.graph.operators.reshape import Reshape
from pipeline.graph.operators.softmax import Softmax
from pipeline.graph.requant import FixedPoint, Mean
from pipeline.graph.tensor import DType, IntArray, Tensor

I8, I32 = DType.parse("int8"), DType.parse("int32")
Case = tuple[Operator, dict[str, Tensor], dict[str, IntArray]]
Make = Callable[[np.random.Generator], Case]


def tensor(name: str, values: IntArray, rng: np.random.Generator) -> Tensor:
    scale = float(rng.uniform(0.01, 0.1))
    return Tensor(name, values.shape, I8, (scale,), int(rng.integers(-20, 20)))


def activation(rng: np.random.Generator, *shape: int) -> IntArray:
    return rng.integers(-128, 128, shape)


def shape(rng: np.random.Generator) -> tuple[int, int, int]:
    height, width, channels = rng.integers(1, 6, 3)
    return int(height), int(width), int(channels)


def case(op: Operator, parts: dict[str, IntArray], rng: np.random.Generator, same: bool) -> Case:
    tensors = {name: tensor(name, values, rng) for name, values in parts.items()}
    if same:
        first = tensors[op.inputs[0]]
        tensors = {n: replace(first, name=n, shape=t.shape) for n, t in tensors.items()}
    out = op.infer(tensors)
    tensors["y"] = replace(tensors[op.inputs[0]], name="y", shape=out)
    if not same:
        tensors["y"] = tensor("y", np.zeros(out), rng)
    return op, tensors, parts


def add(rng: np.random.Generator) -> Case:
    whole = shape(rng)
    other = (whole, whole[2:], (1, 1, whole[2]), (1, whole[1], 1))[rng.integers(4)]
    requants = FixedPoint.of([rng.uniform(0.2, 1)]), FixedPoint.of([rng.uniform(0.2, 1)])
    op = Add(
        "add", ("a", "b"), "y", operands=("a", "b"),
        operand_requants=requants, requant=FixedPoint.of([rng.uniform(0.2, 2) / 2**20]),
    )  # fmt: skip
    return case(op, {"a": activation(rng, *whole), "b": activation(rng, *other)}, rng, False)


def multiply(rng: np.random.Generator) -> Case:
    whole = shape(rng)
    op = Multiply(
        "mul", ("a", "b"), "y", operands=("a", "b"),
        requant=FixedPoint.of([rng.uniform(0.002, 0.05)]), clip=(-100, 120),
    )  # fmt: skip
    scale = activation(rng, 1, 1, whole[2])
    return case(op, {"a": activation(rng, *whole), "b": scale}, rng, False)


def prelu(rng: np.random.Generator) -> Case:
    whole = shape(rng)
    slopes = (whole, whole[2:], (1, 1, whole[2]), (1, 1, 1))[rng.integers(4)]
    op = Prelu(
        "prelu", ("x",), "y", ("a",), requant=FixedPoint.of([rng.uniform(0.3, 2)]),
        below=FixedPoint.of([rng.uniform(0.002, 0.05)]), clip=(-100, 120),
    )  # fmt: skip
    parts = {"x": activation(rng, *whole), "a": activation(rng, *slopes)}
    return case(op, parts, rng, False)


def concat(rng: np.random.Generator) -> Case:
    axis, first = int(rng.integers(3)), list(shape(rng))
    shapes = [[*first], [*first], [*first]]
    for each in shapes:
        each[axis] = int(rng.integers(1, 4))
    parts = {f"x{n}": activation(rng, *each) for n, each in enumerate(shapes)}
    return case(Concat("cat", tuple(parts), "y", axis=axis), parts, rng, True)


def pad(rng: np.random.Generator) -> Case:
    padding = tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (3, 2)))
    op = Pad("pad", ("x",), "y", padding=padding)
    return case(op, {"x": activation(rng, *shape(rng))}, rng, True)


def pool(rng: np.random.Generator, kind: type[Operator] = AveragePool2d) -> Case:
    kernel = tuple(int(k) for k in rng.integers(1, 4, 2))
    padding = tuple(int(rng.integers(0, kernel[n // 2])) for n in range(4))
    height, width, channels = (e + 3 for e in shape(rng))
    extra = {"requant": Mean()} if kind is AveragePool2d else {}
    stride = tuple(int(s) for s in rng.integers(1, 4, 2))
    op = kind("pool", ("x",), "y", kernel=kernel, stride=stride, padding=padding, **extra)
    return case(op, {"x": activation(rng, height, width, channels)}, rng, True)


def maximum(rng: np.random.Generator) -> Case:
    return pool(rng, MaxPool2d)


def softmax(rng: np.random.Generator) -> Case:
    op = Softmax("soft", ("x",), "y", exponentials=exponentials(float(rng.uniform(0.01, 0.3))))
    return case(op, {"x": activation(rng, 3, int(rng.integers(2, 12)))}, rng, False)


def lookup(rng: np.random.Generator) -> Case:
    op = Lookup("table", ("x",), "y", table=tuple(rng.integers(-128, 128, 256).tolist()))
    return case(op, {"x": activation(rng, *shape(rng))}, rng, False)


def convolution(rng: np.random.Generator) -> Case:
    """Any geometry; depthwise as often as not."""
    depth = int(rng.integers(1, 4))
    groups, times = (depth if rng.random() < 0.5 else 1), int(rng.integers(1, 4))
    kernel, stride, dilation = (
        tuple(int(n) for n in rng.integers(1, most, 2)) for most in (4, 4, 3)
    )
    padding = tuple(int(n) for n in rng.integers(0, 3, 4))
    sides = [(k - 1) * d + 1 + int(rng.integers(4)) for k, d in zip(kernel, dilation, strict=True)]
    scales = rng.uniform(1e-4, 1e-3, groups * times)
    op = Conv2d(
        "conv", ("x",), "y", ("w", "b"), padding=padding, stride=stride, dilation=dilation,
        groups=groups, requant=FixedPoint.of(scales.tolist()), clip=(-90, 127),
    )  # fmt: skip
    shapes = (*sides, depth), (groups * times, *kernel, depth // groups)
    return weighted(op, *shapes, rng)


def dense(rng: np.random.Generator) -> Case:
    outputs, whole = int(rng.integers(1, 6)), shape(rng)
    scales = rng.uniform(1e-4, 1e-3, outputs)
    op = Dense("dense", ("x",), "y", ("w", "b"), requant=FixedPoint.of(scales.tolist()))
    return weighted(op, whole, (outputs, *whole), rng)


def weighted(
    op: Operator, source: tuple[int, ...], weights: tuple[int, ...], rng: np.random.Generator
) -> Case:
    parts = {"x": activation(rng, *source), "w": activation(rng, *weights)}
    parts["b"] = rng.integers(-1000, 1000, weights[0])
    op, tensors, values = case(op, parts, rng, False)
    return (
        op,
        tensors | {n: Tensor(n, parts[n].shape, I32 if n == "b" else I8) for n in "wb"},
        values,
    )


def reshape(rng: np.random.Generator) -> Case:
    whole = shape(rng)
    op = Reshape("flat", ("x",), "y", shape=(int(np.prod(whole)),))
    return case(op, {"x": activation(rng, *whole)}, rng, True)


def rearrange(rng: np.random.Generator) -> Case:
    starts, steps, repeats = (
        tuple(int(n) for n in rng.integers(low, high, 3)) for low, high in ((0, 3), (1, 4), (1, 4))
    )
    axes, counts = tuple(int(axis) for axis in rng.permutation(3)), shape(rng)
    extents = [s + (n - 1) * d + 1 for s, n, d in zip(starts, counts, steps, strict=True)]
    out = [0, 0, 0]
    for axis, count, repeat in zip(axes, counts, repeats, strict=True):
        out[axis] = count * repeat - int(rng.integers(repeat))
    op = Rearrange(
        "move", ("x",), "y", shape=(out[0], out[1], out[2]), axes=axes, starts=starts, steps=steps,
        repeats=repeats,
    )  # fmt: skip
    return case(op, {"x": activation(rng, *extents)}, rng, True)


MAKERS: dict[type[Operator], Make] = {
    Add: add,
    AveragePool2d: pool,
    Concat: concat,
    Conv2d: convolution,
    Dense: dense,
    Lookup: lookup,
    MaxPool2d: maximum,
    Multiply: multiply,
    Pad: pad,
    Prelu: prelu,
    Rearrange: rearrange,
    Reshape: reshape,
    Softmax: softmax,
}


def run(op: Operator, tensors: dict[str, Tensor], values: dict[str, IntArray]) -> IntArray:
    regions = {n: BoxValues(tensors[n].box, v[None]) for n, v in values.items()}
    box = tensors["y"].box
    return op.finish(tensors, box, op.accumulate(tensors, box, regions), regions)[0]
