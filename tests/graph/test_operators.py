"""Operators against naive loops. What holds for every operator is in tests/contracts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ThimbleError
from pipeline.graph.operator import BoxValues, Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType, IntArray, Tensor
from tests.comparing import equal

U8, I8, I16, I32 = map(DType.parse, ("uint8", "int8", "int16", "int32"))
SETTINGS = settings(max_examples=150, deadline=None)


@st.composite
def convolutions(draw) -> tuple[Conv2d, dict[str, Tensor], dict[str, IntArray]]:
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    depth, per_group = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilation = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    height, width = (r + draw(st.integers(0, 4)) for r in reach)
    zero = draw(st.integers(0, 9))
    op = Conv2d(
        *("conv", ("x",), "y", ("w", "b")),
        stride=draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        dilation=dilation,
        padding=draw(st.tuples(*[st.integers(0, 2)] * 4)),
        groups=groups,
        requant=PowerOfTwo(draw(st.integers(0, 2)), draw(st.integers(0, 3))),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = {
        "x": rng.integers(0, 256, (height, width, groups * depth)),
        "w": rng.integers(-128, 128, (groups * per_group, *kernel, depth)),
        "b": rng.integers(-128, 128, groups * per_group),
    }
    types = {"x": U8, "w": I8, "b": I8}
    tensors = {n: Tensor(n, v.shape, types[n]) for n, v in values.items()}
    tensors["x"] = replace(tensors["x"], zero_point=zero)
    tensors["y"] = Tensor("y", op.infer(tensors), I32)
    return op, tensors, values


def run(op: Operator, tensors: dict[str, Tensor], values: dict[str, IntArray]) -> IntArray:
    regions = {n: BoxValues(tensors[n].box, v[None]) for n, v in values.items()}
    box = tensors[op.output].box
    return op.finish(tensors, box, op.accumulate(tensors, box, regions), regions)[0]


@given(convolutions())
@SETTINGS
def test_convolution_equals_naive_loops(case) -> None:
    op, tensors, v = case
    zero = tensors["x"].zero_point
    out, kernel_h, kernel_w, depth = v["w"].shape
    wanted = np.zeros(tensors["y"].shape, dtype=np.int64)
    for y, x, c in np.ndindex(*wanted.shape):
        total = 0
        for i, j, d in np.ndindex(kernel_h, kernel_w, depth):
            row = y * op.stride[0] - op.padding[0] + i * op.dilation[0]
            column = x * op.stride[1] - op.padding[2] + j * op.dilation[1]
            if 0 <= row < v["x"].shape[0] and 0 <= column < v["x"].shape[1]:
                channel = c // (out // op.groups) * depth + d
                total += (int(v["x"][row, column, channel]) - zero) * int(v["w"][c, i, j, d])
        shifted = ((total << op.requant.left_shift) + int(v["b"][c])) / 2**op.requant.right_shift
        wanted[y, x, c] = round(shifted)  # Python rounds half to even
    equal(run(op, tensors, v), wanted)
    assert op.macs(tensors) == wanted.size * kernel_h * kernel_w * depth


@pytest.mark.parametrize("cls, reduce", [(AveragePool2d, np.sum), (MaxPool2d, np.max)])
def test_pooling_equals_numpy(cls: type, reduce) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (7, 6, 3))
    op = cls("pool", ("x",), "y", kernel=(3, 2), stride=(2, 2))
    tensors = {"x": Tensor("x", x.shape, U8)}
    tensors["y"] = Tensor("y", op.infer(tensors), I32 if cls is AveragePool2d else U8)
    wanted = [
        [[reduce(x[2 * r : 2 * r + 3, 2 * c : 2 * c + 2, k]) for k in range(3)] for c in range(3)]
        for r in range(3)
    ]
    equal(run(op, tensors, {"x": x}), np.array(wanted))
    assert op.macs(tensors) == 0 and op.atoms(tensors) == 6


def test_pooling_refuses_quantizations_it_has_no_meaning_for() -> None:
    """An average of stored integers ignores zero points; a maximum keeps type and scale."""
    x, y = Tensor("x", (4, 4, 1), U8), Tensor("y", (2, 2, 1), U8)
    average, maximum = AveragePool2d("avg", ("x",), "y"), MaxPool2d("max", ("x",), "y")
    shifted = {"x": replace(x, zero_point=3), "y": replace(y, zero_point=3)}
    assert average.infer({"x": x, "y": y}) == maximum.infer(shifted) == (2, 2, 1)
    for tensors in (shifted, {"x": x, "y": shifted["y"]}):
        with pytest.raises(
            ThimbleError, match="avg: average pooling by a shift needs zero points of 0"
        ):
            average.infer(tensors)
    others = replace(y, dtype=I8), replace(y, scale=(0.5,)), replace(y, zero_point=1)
    for other in others:
        with pytest.raises(ThimbleError, match="max: x and y differ in type, scale or zero point"):
            maximum.infer({"x": x, "y": other})


def test_dense_reads_any_shape() -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.integers(0, 16, (4, 4, 11)), rng.integers(-8, 8, (10, 4, 4, 11)), np.arange(10)
    op = Dense("dense", ("x",), "y", ("w", "b"), requant=PowerOfTwo(2, 0))
    tensors = {
        n: Tensor(n, v.shape, U8 if n == "x" else I8) for n, v in zip("xwb", (x, w, b), strict=True)
    }
    tensors["y"] = Tensor("y", (10,), I16)
    wanted = 4 * (w.reshape(10, -1) @ x.reshape(-1)) + b
    equal(run(op, tensors, {"x": x, "w": w, "b": b}), wanted)
    assert op.macs(tensors) == 1760


@given(st.integers(-(2**31), 2**31), st.integers(0, 4), st.integers(1, 12), st.integers(-128, 127))
def test_half_even_is_exact(acc: int, left: int, right: int, bias: int) -> None:
    value = PowerOfTwo(left, right).apply(np.array([acc]), bias)[0]
    numerator = (acc << left) + bias
    floor, rest = divmod(numerator, 1 << right)
    half = 1 << (right - 1)
    wanted = floor + (rest > half or (rest == half and floor % 2 == 1))
    assert value == wanted
    assert PowerOfTwo(left, right, "floor").apply(np.array([acc]), bias)[0] == floor


def test_shapes_that_do_not_go_together_are_named() -> None:
    tensors = {"x": Tensor("x", (2, 2, 3), U8), "w": Tensor("w", (4, 3, 3, 3), I8)}
    conv = Conv2d("conv1", ("x",), "y", ("w", "b"))
    with pytest.raises(ThimbleError, match="conv1: a 3x3 kernel is larger than 2x2"):
        conv.infer(tensors)
    tensors["w"] = Tensor("w", (4, 1, 1, 2), I8)
    with pytest.raises(ThimbleError, match="weights for 2 input channels in 1 groups, but x has 3"):
        conv.infer(tensors)
