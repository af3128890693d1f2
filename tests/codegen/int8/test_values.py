"""Expressions of generated C against their values; ranges hold whatever the loops do. And nn_int8.h
against the numpy definitions, at the extremes and at random."""

import ctypes
import re
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.codegen.c import expressions, nest, values
from pipeline.codegen.c.values import Value, greatest, least, span
from pipeline.codegen.constants import Names, variable
from pipeline.codegen.render import comment, static_source
from pipeline.graph.exponential import logarithm, reciprocal
from pipeline.graph.requant import FixedPoint, Mean, PowerOfTwo, doubled_high, rounded_shift
from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Lin, Slice
from tests.comparing import equal

LOOPS = {"a": ("a", 4), "b": ("b", 3)}
PLACES = [{"a": a, "b": b} for a, b in product(range(4), range(3))]


def evaluated(value: Value | str, place: dict[str, int]) -> int:
    """As C computes it, where nothing is negative that is divided."""
    text = re.sub(r"(?<!/)/(?!/)", "//", str(value))
    return int(eval(text, {"nn_min": min, "nn_max": max}, place))


lins = st.builds(
    lambda const, a, b: Lin(const, (("a", a), ("b", b))),
    st.integers(-9, 20), st.integers(-4, 6), st.integers(0, 6),
)  # fmt: skip


@given(lins, lins, st.integers(0, 9), st.integers(1, 7))
@settings(max_examples=200)
def test_arithmetic(one: Lin, other: Lin, factor: int, divisor: int) -> None:
    a, b = values.of(one, LOOPS), values.of(other, LOOPS)
    positive = greatest(a, Value(0))
    found = {
        "sum": (a + b, lambda x, y: x + y),
        "difference": (a - b, lambda x, y: x - y),
        "product": (a * factor, lambda x, y: x * factor),
        "least": (least(a, b), min),
        "greatest": (greatest(a, b), max),
        "quotient": (positive // divisor, lambda x, y: max(x, 0) // divisor),
        "rest": (positive % divisor, lambda x, y: max(x, 0) % divisor),
        "mixed": (least(a, b) + greatest(a, b), lambda x, y: x + y),
    }
    for (name, (value, expected)), place in product(found.items(), PLACES):
        wanted = expected(one(place), other(place))
        assert evaluated(value, place) == wanted, name
        assert value.low <= wanted <= value.high, name


@given(lins, st.integers(1, 8), st.integers(1, 15))
@settings(max_examples=200)
def test_spans_are_the_boxes_of_slices(lo: Lin, size: int, limit: int) -> None:
    part = span(lo, size, limit, LOOPS)
    for place in PLACES:
        ((start, stop),) = Slice("x", (lo,), (size,)).box((limit,), place)
        low, high = evaluated(part.start, place), evaluated(part.stop, place)
        assert max(0, high - low) == stop - start
        assert stop == start or (low, high) == (start, stop)
        assert high - low >= part.fewest


@given(lins, st.integers(1, 6), st.integers(1, 4))
@settings(max_examples=200)
def test_what_stays_in_a_ring(lo: Lin, ring: int, extent: int) -> None:
    start = greatest(values.of(lo, LOOPS), Value(0))
    if start.stays_in(ring, extent):
        for place in PLACES:
            assert evaluated(start, place) % ring + extent <= ring


def test_equal_ends_cancel() -> None:
    part = span(Lin(0, (("a", 2),)), 2, 8, LOOPS)
    assert str(part.extent) == "2" and part.extent.known
    assert str(values.of(Lin(-1, (("a", 3), ("b", 1))), LOOPS)) == "3 * a + b - 1"


def walked(extents: list[int], strides: list[list[int]]) -> list[tuple[int, ...]]:
    """Offsets of each view, in the order of the loops."""
    loops, counts = nest.nest([Value(n) for n in extents], strides)
    ranges = [range(counts[axis.count].const) for axis in loops.axes]
    found = []
    for place in product(*ranges):
        env = {axis.variable: n for axis, n in zip(loops.axes, place, strict=True)}
        found.append(tuple(evaluated(loops.at(v), env) for v in range(len(strides))))
    return found


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
@settings(max_examples=200)
def test_merged_loops_walk_the_same_elements(extents: list[int], data: st.DataObject) -> None:
    packed = [1] * len(extents)
    for axis in reversed(range(len(extents) - 1)):
        packed[axis] = packed[axis + 1] * extents[axis + 1]
    other = data.draw(st.lists(st.sampled_from([0, 1, 3, 12]), min_size=len(extents),
                               max_size=len(extents)))  # fmt: skip
    strides = [packed, other]
    expected = [
        tuple(sum(i * s for i, s in zip(place, view, strict=True)) for view in strides)
        for place in product(*map(range, extents))
    ]
    assert walked(extents, strides) == expected


def test_what_lies_side_by_side_is_one_loop() -> None:
    loops, counts = nest.nest([Value(n) for n in (4, 1, 5, 6)], [[30, 30, 6, 1], [30, 9, 6, 1]])
    assert loops.depth == 1 and counts == {"i_count": Value(120)}
    loops, _ = nest.nest([Value(n) for n in (4, 5, 6)], [[30, 6, 1], [60, 12, 2], [0, 0, 1]])
    assert loops.depth == 2


def test_expressions_read_as_a_person_writes_them() -> None:
    for text, expected in (
        (expressions.product("y - 1", 24), "(y - 1) * 24"),
        (expressions.product("y", 1), "y"),
        (expressions.product("3", 8), "24"),
        (expressions.minus("y", "-2"), "y + 2"),
        (expressions.minus("y", "2 * t + 1"), "y - (2 * t + 1)"),
        (expressions.total("0", "y", "0"), "y"),
        (expressions.offset("y + ky", "0", 3, 8), "(nn_ring(y + ky, 3)) * 8"),
        (expressions.centred("in[i]", -128), "(in[i] + 128)"),
        (expressions.centred("in[i]", 0), "in[i]"),
    ):
        assert text == expected


def test_names() -> None:
    names = Names()
    assert names("a/b:0", "bias") == names("a/b:0", "bias") == "nn_a_b_0_bias"
    assert names("a.b.0", "bias") == "nn_a_b_0_bias_2"
    assert names("größe") == "nn_gr_e" and len(names("x" * 500)) < 60
    assert [variable(n) for n in ("k", "do", "row", "a-b", "if")] == [
        "k", "loop_do", "loop_row", "loop_a_b", "loop_if",
    ]  # fmt: skip
    assert "*/" not in comment("*/ evil \\\n /*") and "\n" not in comment("a\nb")


WRAPPERS = Path(__file__).with_name("values.c").read_text()
COUNT = 200_000
EXTREMES = [0, 1, -1, 2, -2, (1 << 31) - 1, -(1 << 31), 1 << 30, -(1 << 30), 128, -128]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("arithmetic")
    for name in ("int8/nn_int8.h", "frame/nn_memory.h"):
        (folder / name.rpartition("/")[2]).write_text(static_source(name))
    (folder / "all.c").write_text(WRAPPERS)
    flags = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fwrapv"]
    subprocess.run(["cc", *flags, "all.c", "-o", "all.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def run(library: ctypes.CDLL, name: str, *columns: IntArray) -> IntArray:
    a, b, c = (
        np.ascontiguousarray(column, np.int32) for column in (*columns, *columns, *columns)[:3]
    )
    to = np.empty(len(a), np.int32)
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (a, b, c, to))
    getattr(library, f"{name}_all")(*pointers, len(a))
    return to.astype(np.int64)


def integers(seed: int, low: int = -(1 << 31), high: int = (1 << 31) - 1) -> IntArray:
    """Draw integers of every magnitude alike, and the extremes."""
    rng = np.random.default_rng(seed)
    size = 2.0 ** rng.uniform(0, 31, COUNT)
    found = np.clip((rng.choice([-1, 1], COUNT) * size).astype(np.int64), low, high)
    fitting = [value for value in EXTREMES if low <= value <= high]
    found[: len(fitting)] = fitting
    return rng.permutation(found)


def test_products_and_shifts(library: ctypes.CDLL) -> None:
    value, multiplier = integers(0), integers(1, 0)
    equal(run(library, "doubled_high", value, multiplier), doubled_high(value, multiplier))
    exponent = np.random.default_rng(2).integers(0, 32, COUNT)
    equal(run(library, "rounded_shift", value, exponent), rounded_shift(value, exponent))


def test_fixed_point(library: ctypes.CDLL) -> None:
    value, multiplier = integers(3), integers(4, 0)
    shift = np.random.default_rng(5).integers(-31, 1, COUNT)
    expected = FixedPoint(tuple(multiplier.tolist()), tuple(shift.tolist())).apply(value)
    equal(run(library, "scaled", value, multiplier, -shift), expected)
    equal(run(library, "scaled_up", value, multiplier, shift), expected)
    up = np.random.default_rng(6).integers(-31, 31, COUNT)
    small = np.clip(value, -(1 << 32) >> np.maximum(up, 0), (1 << 32) >> np.maximum(up, 0))
    small = np.clip(small, -(1 << 31), (1 << 31) - 1)
    expected = FixedPoint(tuple(multiplier.tolist()), tuple(up.tolist())).apply(small)
    expected = np.clip(expected, -(1 << 31), (1 << 31) - 1)
    equal(run(library, "scaled_up", small, multiplier, up), expected)


@pytest.mark.parametrize("shift", [1, 2, 7, 16, 30, 31])
def test_halves_to_even(library: ctypes.CDLL, shift: int) -> None:
    value = integers(shift)
    value[:1000] = np.arange(-500, 500) << (shift - 1) & 0x7FFFFFFF  # halves, exactly
    columns = value, np.full(COUNT, shift)
    equal(run(library, "half_even", *columns), PowerOfTwo(0, shift).apply(value))


def test_means(library: ctypes.CDLL) -> None:
    count = np.random.default_rng(7).integers(1, 5000, COUNT)
    value = np.random.default_rng(8).integers(-255, 256, COUNT) * count // 2
    equal(run(library, "mean", value, count), Mean().apply(value, count))


def test_reciprocals_and_logarithms(library: ctypes.CDLL) -> None:
    """Every sum of exponentials is between 1 and 4095 in Q12.19."""
    value = np.clip(np.abs(integers(9)), 1 << 19, (1 << 31) - 1)
    mantissa, over = reciprocal(value)
    equal(run(library, "mantissa", value), mantissa)
    equal(run(library, "over", value), over)
    equal(run(library, "logarithm", value), logarithm(value))


def test_taps_inside(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(10)
    at, bound = rng.integers(-20, 20, 5000), rng.integers(-20, 20, 5000)
    dilation = rng.integers(1, 4, 5000)
    taps = at[:, None] + np.arange(60) * dilation[:, None]
    first = (taps < bound[:, None]).sum(1)
    equal(run(library, "first_tap", at, bound, dilation), first)
    equal(run(library, "end_tap", at, bound, dilation), np.minimum(first, 7))
