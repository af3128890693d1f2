"""Operators of quantized networks: exact integers against plain Python, declared windows against
what is really read, and real values within one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import exp, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand
from pipeline.graph.exponential import exponentials
from pipeline.graph.operator import Operator, Region
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.concat import Concat
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.multiply import Multiply
from pipeline.graph.operators.pad import Pad
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.operators.rearrange import Rearrange
from pipeline.graph.operators.reshape import Reshape
from pipeline.graph.operators.softmax import Softmax
from pipeline.graph.requant import FixedPoint, Mean
from pipeline.graph.tensor import Box, DType, IntArray, Tensor

I8, I32 = DType.parse("int8"), DType.parse("int32")
SETTINGS = settings(max_examples=100, deadline=None)
Case = tuple[Operator, dict[str, Tensor], dict[str, IntArray]]
Make = Callable[[np.random.Generator], Case]


def quantized(value: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier in exact rational arithmetic, one value at a time."""
    product = Fraction((value << max(shift, 0)) * multiplier, 1 << 31)
    high = floor(product + Fraction(1, 2))  # the nudge rounds halves up, in both signs
    divided = Fraction(high, 1 << max(-shift, 0))
    away = floor(abs(divided) + Fraction(1, 2))
    return away if divided >= 0 else -away


@given(st.integers(-(1 << 24), 1 << 24), st.integers(1 << 30, (1 << 31) - 1), st.integers(-20, 6))
@settings(max_examples=1000, deadline=None)
def test_fixed_point_rounds_as_gemmlowp(value: int, multiplier: int, shift: int) -> None:
    found = FixedPoint((multiplier,), (shift,)).apply(np.array([value]))
    assert found.tolist() == [quantized(value, multiplier, shift)]


@given(st.floats(1e-7, 100.0), st.integers(-(1 << 20), 1 << 20))
@SETTINGS
def test_a_scale_becomes_the_nearest_multiplier(scale: float, value: int) -> None:
    requant = FixedPoint.of([scale])
    real = requant.multipliers[0] * 2.0 ** (requant.shifts[0] - 31)
    assert real == pytest.approx(scale, rel=2**-30)
    assert abs(int(requant.apply(np.array([value]))[0]) - value * scale) <= 1.0 + abs(value) * 1e-9


@given(st.floats(2.0**-12, 0.999), st.integers(1, 1 << 24), st.floats(-1, 1))
@settings(max_examples=1000, deadline=None)
def test_rounding_once_gives_the_nearest(scale: float, largest: int, share: float) -> None:
    requant = FixedPoint.rounding_once([scale], largest)
    assert requant.shifts == (0,)
    value = round(share * min(largest, 256 / scale))
    real = Fraction(scale) * value
    found = int(requant.apply(np.array([value]))[0])
    assert abs(found - real) <= Fraction(1, 2) + Fraction(1, 1 << 12)


@pytest.mark.parametrize(
    ("scales", "largest"),
    [([0.1, 1.5], 100), ([0.1, 2.0**-20], 1 << 30), ([1 - 2.0**-40], 100)],
)
def test_rounding_twice_where_once_would_lose(scales: list[float], largest: int) -> None:
    """Scales of 1 and more, and those that leave a multiplier few bits."""
    assert FixedPoint.rounding_once(scales, largest) == FixedPoint.of(scales)


def test_rounding_once_is_nearer_than_twice() -> None:
    """By three bits: the second rounding moves every 16th result."""
    sums = np.arange(-2000, 2000)
    real = np.floor(sums * 0.0626 + 0.5)
    once = FixedPoint.rounding_once([0.0626], 2000).apply(sums)
    assert np.array_equal(once, real)
    assert 0.04 < (FixedPoint.of([0.0626]).apply(sums) != real).mean() < 0.08


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf")])
def test_a_scale_without_a_multiplier_is_refused(scale: float) -> None:
    with pytest.raises(ThimbleError, match="fixed-point"):
        FixedPoint.rounding_once([scale], 100)


def test_per_channel_tables_are_cut_with_their_channels() -> None:
    requant = FixedPoint.of([0.5, 0.25, 2.0])
    values = np.array([[100, 100, 100]])
    whole = requant.apply(values)
    assert whole.tolist() == [[50, 25, 200]]
    assert requant.part(1, 3).apply(values[:, 1:]).tolist() == whole[:, 1:].tolist()


@pytest.mark.parametrize("scale", [0.02, 0.1, 0.5])
def test_exponentials_are_those_of_real_numbers(scale: float) -> None:
    for d, found in enumerate(exponentials(scale)):
        wanted = exp(-scale * d)
        if found:
            assert abs(found / 2**31 - wanted) < 1e-6
        else:
            assert wanted < 2**-31 * 2**14  # too far below to show in 8 bits


# --- random cases of each operator


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


def depthwise(rng: np.random.Generator) -> Case:
    channels, times = (int(n) for n in rng.integers(1, 4, 2))
    scales = rng.uniform(1e-4, 1e-3, channels * times)
    op = Conv2d(
        "dw", ("x",), "y", ("w", "b"), padding=(1, 0, 1, 1), stride=(2, 1), groups=channels,
        requant=FixedPoint.of(scales.tolist()), clip=(-90, 127),
    )  # fmt: skip
    parts = {
        "x": activation(rng, 5, 4, channels),
        "w": activation(rng, channels * times, 3, 2, 1),
        "b": rng.integers(-1000, 1000, channels * times),
    }
    op_, tensors, values = case(op, parts, rng, False)
    tensors |= {n: Tensor(n, parts[n].shape, I32 if n == "b" else I8) for n in "wb"}
    return op_, tensors, values


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


EVERY: list[Make] = [
    add, multiply, concat, pad, pool, maximum, softmax, lookup, depthwise, reshape, rearrange,
]  # fmt: skip
SUMS: list[Make] = [add, concat, pad, pool, depthwise]


def run(op: Operator, tensors: dict[str, Tensor], values: dict[str, IntArray]) -> IntArray:
    regions = {n: Region(tensors[n].box, v[None]) for n, v in values.items()}
    box = tensors["y"].box
    return op.finish(tensors, box, op.accumulate(tensors, box, regions), regions)[0]


@pytest.mark.parametrize("make", EVERY)
@given(st.integers(0, 1 << 32))
@SETTINGS
def test_a_box_of_outputs_needs_just_the_regions_it_declares(make: Make, seed: int) -> None:
    """A part computed from the declared regions alone equals its part of the whole."""
    rng = np.random.default_rng(seed)
    op, tensors, values = make(rng)
    whole = run(op, tensors, values)
    assert whole.shape == tensors["y"].shape
    low = [int(rng.integers(0, extent)) for extent in whole.shape]
    box: Box = tuple(
        (a, int(rng.integers(a + 1, extent + 1)))
        for a, extent in zip(low, whole.shape, strict=True)
    )
    regions = {n: Region(t.box, values[n][None]) for n, t in tensors.items() if n in values}
    for term in op.terms(tensors):
        for operand in term.operands:
            regions[operand.tensor] = declared(operand, box, tensors, values)
    part = op.finish(tensors, box, op.accumulate(tensors, box, regions), regions)[0]
    assert np.array_equal(part, whole[tuple(slice(*each) for each in box)])


def declared(
    operand: Operand, box: Box, tensors: dict[str, Tensor], values: dict[str, IntArray]
) -> Region:
    cut = tuple(
        (max(low, 0), max(max(low, 0), min(high, extent)))
        for (low, high), extent in zip(
            operand.region(box), tensors[operand.tensor].shape, strict=True
        )
    )
    return Region(cut, values[operand.tensor][tuple(slice(*each) for each in cut)][None])


@pytest.mark.parametrize("make", SUMS)
@given(st.integers(0, 1 << 32))
@SETTINGS
def test_sums_of_disjoint_parts_are_the_whole_and_stay_in_bounds(make: Make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    op, tensors, values = make(rng)
    box = tensors["y"].box
    regions = {n: Region(tensors[n].box, v[None]) for n, v in values.items()}
    whole = op.accumulate(tensors, box, regions)
    name = op.inputs[0]
    cut = int(rng.integers(0, values[name].shape[-1] + 1))
    parts = []
    for low, high in ((0, cut), (cut, values[name].shape[-1])):
        piece: Box = (*tensors[name].box[:-1], (low, high))
        some = {**regions, name: Region(piece, values[name][None, ..., low:high])}
        if parts:  # what the other operands give is in the first part
            for other in op.inputs[1:]:
                empty = tuple((0, 0) for _ in tensors[other].shape)
                some[other] = Region(empty, np.zeros((1, *[0] * len(empty)), np.int64))
        parts.append(op.accumulate(tensors, box, some))
    assert np.array_equal(np.broadcast_to(parts[0] + parts[1], whole.shape), whole)
    least, most = op.partial_sums(tensors, values)
    for sums in (*parts, whole):
        assert least <= sums.min() and sums.max() <= most


@given(st.integers(0, 1 << 32))
@SETTINGS
def test_addition_is_exact_and_near_the_real_sum(seed: int) -> None:
    op, tensors, values = add(np.random.default_rng(seed))
    assert isinstance(op, Add)
    found = run(op, tensors, values)
    a, b = np.broadcast_arrays(values["a"], values["b"])
    wanted = np.zeros(found.shape, dtype=np.int64)
    for place in np.ndindex(*found.shape):
        total = 0
        for array, name, requant in zip((a, b), "ab", op.operand_requants, strict=True):
            centred = int(array[place]) - tensors[name].zero_point
            total += quantized(centred << 20, requant.multipliers[0], requant.shifts[0])
        value = quantized(total, op.requant.multipliers[0], op.requant.shifts[0])
        wanted[place] = min(max(value + tensors["y"].zero_point, -128), 127)
    assert np.array_equal(found, wanted)


@given(st.integers(0, 1 << 32))
@SETTINGS
def test_each_rearranged_element_is_the_one_that_the_indices_say(seed: int) -> None:
    op, tensors, values = rearrange(np.random.default_rng(seed))
    assert isinstance(op, Rearrange)
    found = run(op, tensors, values)
    for place in np.ndindex(*found.shape):
        index = [
            place[axis] // repeat * step + start
            for axis, start, step, repeat in zip(
                op.axes, op.starts, op.steps, op.repeats, strict=True
            )
        ]
        assert found[place] == values["x"][tuple(index)]


@given(st.integers(0, 1 << 32))
@SETTINGS
def test_a_mean_counts_only_what_is_inside(seed: int) -> None:
    op, tensors, values = pool(np.random.default_rng(seed))
    assert isinstance(op, AveragePool2d)
    found, x = run(op, tensors, values), values["x"]
    for row, column, channel in np.ndindex(*found.shape):
        top = row * op.stride[0] - op.padding[0]
        left = column * op.stride[1] - op.padding[2]
        window = x[max(top, 0) : top + op.kernel[0], max(left, 0) : left + op.kernel[1], channel]
        mean = Fraction(int(window.sum()), window.size)
        away = floor(abs(mean) + Fraction(1, 2))
        # C's division of (sum ± count // 2): halves away from zero
        assert found[row, column, channel] == (away if mean >= 0 else -away)


@given(st.integers(0, 1 << 32))
@SETTINGS
def test_softmax_is_within_a_step_of_the_real_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = float(rng.uniform(0.005, 0.3))
    x = activation(rng, 4, int(rng.integers(1, 30)))
    op = Softmax("soft", ("x",), "y", exponentials=exponentials(scale))
    tensors = {n: Tensor(n, x.shape, I8, (scale,), 3) for n in "xy"}
    real = np.exp(scale * (x - x.max(axis=1, keepdims=True)))
    real = real / real.sum(axis=1, keepdims=True) * 256 - 128
    assert np.abs(run(op, tensors, {"x": x}) - np.minimum(real, 127)).max() <= 1.0


def test_what_does_not_fit_is_refused_by_name() -> None:
    a, b = Tensor("a", (2, 2, 3), I8), Tensor("b", (2, 2, 4), I8)
    both = {"a": a, "b": b}
    with pytest.raises(ThimbleError, match="add: 2x2x3 and 2x2x4 do not go together"):
        Add("add", ("a", "b"), "y", operands=("a", "b")).infer(both)
    with pytest.raises(ThimbleError, match="cat: 2x2x3, 2x2x4 cannot be joined along axis 0"):
        Concat("cat", ("a", "b"), "y", axis=0).infer(both)
    assert Concat("cat", ("a", "b"), "y", axis=2).infer(both) == (2, 2, 7)
    with pytest.raises(ThimbleError, match=r"flat: .* cannot be reshaped"):
        Reshape("flat", ("a",), "y", shape=(11,)).infer(both)
    whole = {"axes": (0, 1, 2), "steps": (1, 1, 1), "repeats": (1, 1, 1)}
    for starts, axes in (((0, 1, 0), (0, 1, 2)), ((0, 0, 0), (0, 1, 1)), ((0, -1, 0), (0, 1, 2))):
        with pytest.raises(ThimbleError, match=r"move: .*(beyond|do not fit|starts at 0)"):
            fields = {**whole, "starts": starts, "axes": axes}
            Rearrange("move", ("a",), "y", shape=(2, 2, 3), **fields).infer(both)
    with pytest.raises(ThimbleError, match="table: int8 needs a table of 256, not of 3"):
        Lookup("table", ("a",), "y", table=(1, 2, 3)).infer(both)
    with pytest.raises(ThimbleError, match=r"pool: .*in the padding"):
        MaxPool2d("pool", ("a",), "y", kernel=(2, 2), padding=(2, 0, 0, 0)).infer(both)
