"""Operators against naive loops: exact integers in plain Python, and real values within one step.
What holds for every operator is in tests/contracts. Graphs check themselves, and survive the disk.
"""

from dataclasses import replace
from fractions import Fraction
from math import exp, floor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.artifacts import read_npz
from pipeline.errors import ThimbleError
from pipeline.graph.exponential import exponentials
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.along import Softmax
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Concat, Rearrange, Reshape
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, Mean, PowerOfTwo
from pipeline.graph.tensor import DType, Tensor
from tests.comparing import equal
from tests.passes.growers import MAKERS, run
from tests.plan.fixtures import row_ring

U8, I8, I16 = map(DType.parse, ("uint8", "int8", "int16"))
SEEDS = st.integers(0, 1 << 32)
SETTINGS = settings(max_examples=100)


def quantized(value: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier in exact rational arithmetic, one value at a time."""
    product = Fraction((value << max(shift, 0)) * multiplier, 1 << 31)
    high = floor(product + Fraction(1, 2))  # the nudge rounds halves up, in both signs
    divided = Fraction(high, 1 << max(-shift, 0))
    away = floor(abs(divided) + Fraction(1, 2))
    return away if divided >= 0 else -away


@pytest.mark.ci
@given(st.integers(-(1 << 24), 1 << 24), st.integers(1 << 30, (1 << 31) - 1), st.integers(-20, 6))
@settings(max_examples=1000)
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


@pytest.mark.ci
@given(st.floats(2.0**-12, 0.999), st.integers(1, 1 << 24), st.floats(-1, 1))
@settings(max_examples=1000)
def test_rounding_once_gives_the_nearest(scale: float, largest: int, share: float) -> None:
    requant = FixedPoint.rounding_once([scale], largest)
    assert requant.shifts == (0,)
    value = round(share * min(largest, 256 / scale))
    real = Fraction(scale) * value
    found = int(requant.apply(np.array([value]))[0])
    assert abs(found - real) <= Fraction(1, 2) + Fraction(1, 1 << 12)


@pytest.mark.parametrize(
    ("scales", "largest"), [([0.1, 1.5], 100), ([0.1, 2.0**-20], 1 << 30), ([1 - 2.0**-40], 100)]
)
def test_rounding_twice_where_once_would_lose(scales: list[float], largest: int) -> None:
    """Scales of 1 and more, and those that leave a multiplier few bits."""
    assert FixedPoint.rounding_once(scales, largest) == FixedPoint.of(scales)


def test_rounding_once_is_nearer_than_twice() -> None:
    """By three bits: the second rounding moves every 16th result."""
    sums = np.arange(-2000, 2000)
    real = np.floor(sums * 0.0626 + 0.5)
    once = FixedPoint.rounding_once([0.0626], 2000).apply(sums)
    equal(once, real)
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


def finished(op: Operator, total: int, bias: int, channel: int) -> int:
    """A sum of a channel, as the operator's requantization rounds it, before its zero point."""
    requant = op.requant  # type: ignore[attr-defined]
    if isinstance(requant, PowerOfTwo):
        return round(
            ((total << requant.left_shift) + bias) / 2**requant.right_shift
        )  # half to even
    n = channel % len(requant.multipliers)
    return quantized(total + bias, requant.multipliers[n], requant.shifts[n])


@given(SEEDS)
@SETTINGS
def test_convolution_equals_naive_loops(seed: int) -> None:
    op, tensors, values = MAKERS[Conv2d](np.random.default_rng(seed))
    assert isinstance(op, Conv2d)
    x, weights, biases = (values[name] for name in (*op.inputs, *op.parameters))
    zero, (low, high) = tensors[op.inputs[0]].zero_point, op.clip or (-128, 127)
    out, kernel_h, kernel_w, depth = weights.shape
    wanted = np.zeros(tensors["y"].shape, dtype=np.int64)
    for y, column, c in np.ndindex(*wanted.shape):
        total = 0
        for i, j, d in np.ndindex(kernel_h, kernel_w, depth):
            row = y * op.stride[0] - op.padding[0] + i * op.dilation[0]
            beside = column * op.stride[1] - op.padding[2] + j * op.dilation[1]
            if 0 <= row < x.shape[0] and 0 <= beside < x.shape[1]:
                channel = c // (out // op.groups) * depth + d
                total += (int(x[row, beside, channel]) - zero) * int(weights[c, i, j, d])
        value = finished(op, total, int(biases[c]), c) + tensors["y"].zero_point
        wanted[y, column, c] = min(max(value, low), high)
    equal(run(op, tensors, values), wanted)
    assert op.macs(tensors) == wanted.size * kernel_h * kernel_w * depth


@given(SEEDS)
@SETTINGS
def test_addition_is_exact_and_near_the_real_sum(seed: int) -> None:
    op, tensors, values = MAKERS[Add](np.random.default_rng(seed))
    assert isinstance(op, Add)
    found, (low, high) = run(op, tensors, values), op.clip or (-128, 127)
    arrays = np.broadcast_arrays(*(values[name] for name in op.operands))
    wanted = np.zeros(found.shape, dtype=np.int64)
    for place in np.ndindex(*found.shape):
        total = 0
        for array, name, requant in zip(arrays, op.operands, op.operand_requants, strict=True):
            centred = int(array[place]) - tensors[name].zero_point
            total += quantized(centred << 20, requant.multipliers[0], requant.shifts[0])
        value = finished(op, total, 0, 0) + tensors["y"].zero_point
        wanted[place] = min(max(value, low), high)
    equal(found, wanted)


@given(SEEDS)
@SETTINGS
def test_each_rearranged_element_is_the_one_that_the_indices_say(seed: int) -> None:
    op, tensors, values = MAKERS[Rearrange](np.random.default_rng(seed))
    assert isinstance(op, Rearrange)
    found = run(op, tensors, values)
    for place in np.ndindex(*found.shape):
        ways = zip(op.axes, op.starts, op.steps, op.repeats, strict=True)
        index = [place[axis] // repeat * step + start for axis, start, step, repeat in ways]
        assert found[place] == values[op.inputs[0]][tuple(index)]


@pytest.mark.parametrize("kind", [AveragePool2d, MaxPool2d])
@given(SEEDS)
@SETTINGS
def test_a_pool_counts_only_what_is_inside(kind: type[Operator], seed: int) -> None:
    """A maximum, or a mean in one quantization."""
    rng = np.random.default_rng(seed)
    drawn = iter(lambda: MAKERS[kind](rng), None)
    op, tensors, values = next(
        each for each in drawn if isinstance(getattr(each[0], "requant", Mean()), Mean)
    )
    assert isinstance(op, AveragePool2d | MaxPool2d)
    found, x = run(op, tensors, values), values[op.inputs[0]]
    for row, column, channel in np.ndindex(*found.shape):
        top = row * op.stride[0] - op.padding[0]
        left = column * op.stride[1] - op.padding[2]
        down, across = op.dilation if isinstance(op, MaxPool2d) else (1, 1)
        rows = np.arange(top, top + op.kernel[0] * down, down)
        columns = np.arange(left, left + op.kernel[1] * across, across)
        rows, columns = (
            a[(a >= 0) & (a < n)] for a, n in zip((rows, columns), x.shape[:2], strict=True)
        )
        window = x[np.ix_(rows, columns)][..., channel]
        mean = Fraction(int(window.sum()), window.size)
        away = floor(abs(mean) + Fraction(1, 2))
        # C's division of (sum ± count // 2): halves away from zero
        value = (away if mean >= 0 else -away) if kind is AveragePool2d else window.max()
        assert found[row, column, channel] == np.clip(value, *(op.clip or (-128, 127)))
    assert op.macs(tensors) == 0 and op.atoms(tensors) == op.kernel[0] * op.kernel[1]


@pytest.mark.parametrize("table", [(1,) * 255, (1 << 31, *(1,) * 255), (-1, *(1,) * 255)])
def test_softmax_takes_256_exponentials_of_31_bits(table: tuple[int, ...]) -> None:
    with pytest.raises(ThimbleError, match=r"softmax needs 256 exp|is not of 0 to 2\^31 - 1"):
        Softmax("soft", ("x",), "y", exponentials=table).infer({"x": Tensor("x", (4,), I8)})


@given(SEEDS)
@SETTINGS
def test_softmax_is_within_a_step_of_the_real_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = float(rng.uniform(0.005, 0.3))
    x = rng.integers(-128, 128, (4, int(rng.integers(1, 30))))
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


@pytest.fixture
def graph() -> Graph:
    return row_ring(np.random.default_rng(0))[1]


def test_save_and_load_keep_everything_and_every_byte(graph: Graph, tmp_path: Path) -> None:
    graph.save(tmp_path / "a")
    loaded = Graph.load(tmp_path / "a")
    loaded.save(tmp_path / "b")
    for name in ("graph.json", "graph.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert loaded.hash == graph.hash and loaded.operators == graph.operators
    frames = np.random.default_rng(1).integers(0, 256, (3, 7, 6, 2))
    equal(loaded.evaluate(frames), graph.evaluate(frames, batch=2))


def test_constants_are_stored_narrow_and_come_back_as_they_were(
    graph: Graph, tmp_path: Path
) -> None:
    graph.save(tmp_path)
    stored = read_npz(tmp_path / "graph.npz")
    for name, values in graph.constants.items():
        bits = graph.tensors[name].dtype.bits
        assert stored[name].itemsize == max(1, bits // 8) < 8
        again = Graph.load(tmp_path).constants[name]
        assert again.dtype == np.int64 and np.array_equal(again, values)


def test_hash_follows_weights(graph: Graph) -> None:
    constants = {**graph.constants, "h.bias": graph.constants["h.bias"] ^ 1}
    assert replace(graph, constants=constants).hash != graph.hash


@pytest.mark.parametrize("keep", [0, 40, -10])
@pytest.mark.parametrize("name", ["graph.json", "graph.npz"])
def test_damaged_files_are_one_clear_line(
    graph: Graph, tmp_path: Path, name: str, keep: int
) -> None:
    graph.save(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:keep])
    with pytest.raises(ThimbleError, match=f"{name} is damaged"):
        Graph.load(tmp_path)


def test_graph_names_what_is_wrong(graph: Graph) -> None:
    with pytest.raises(ThimbleError, match="h reads image, which nothing before it produces"):
        replace(graph, inputs=("other",))
    wide = {**graph.constants, "h.bias": graph.constants["h.bias"] + 1000}
    with pytest.raises(ThimbleError, match=r"h\.bias has values outside int8"):
        replace(graph, constants=wide)
    tensors = {**graph.tensors, "h": replace(graph.tensors["h"], shape=(5, 5, 2))}
    with pytest.raises(ThimbleError, match=r"h makes \(5, 4, 2\), but h is \(5, 5, 2\)"):
        replace(graph, tensors=tensors)


def test_types() -> None:
    assert (DType.parse("uint4").maximum, DType.parse("int4").minimum) == (15, -8)
    assert str(DType.parse("int16")) == "int16"
    with pytest.raises(ThimbleError, match="unknown integer type 'int7'"):
        DType.parse("int7")
