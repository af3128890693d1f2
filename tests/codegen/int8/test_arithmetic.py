"""nn_int8.h against the numpy definitions, at the extremes and at random."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from pipeline.codegen.render import static_source
from pipeline.graph.exponential import reciprocal
from pipeline.graph.requant import FixedPoint, Mean, PowerOfTwo, doubled_high, rounded_shift
from pipeline.graph.tensor import IntArray
from tests.comparing import equal

WRAPPERS = """
#include "nn_int8.h"
#define WRAP(name, call) \\
    void name##_all(const int32_t *a, const int32_t *b, const int32_t *c, int32_t *to, int n) { \\
        (void)b; (void)c; for (int i = 0; i < n; i++) to[i] = call; }
WRAP(doubled_high, nn_doubled_high(a[i], b[i]))
WRAP(rounded_shift, nn_rounded_shift(a[i], b[i]))
WRAP(scaled, nn_scaled(a[i], b[i], c[i]))
WRAP(scaled_up, nn_scaled_up(a[i], b[i], c[i]))
WRAP(floored, nn_floored(a[i], b[i]))
WRAP(half_even, nn_half_even(a[i], b[i]))
WRAP(mean, nn_mean(a[i], b[i]))
WRAP(first_tap, nn_first_tap(a[i], b[i], c[i]))
WRAP(end_tap, nn_end_tap(a[i], b[i], c[i], 7))
static int32_t over_of(int32_t x) { int32_t over; nn_reciprocal(x, &over); return over; }
static int32_t mantissa_of(int32_t x) { int32_t over; return nn_reciprocal(x, &over); }
WRAP(mantissa, mantissa_of(a[i]))
WRAP(over, over_of(a[i]))
"""
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
    """Of every magnitude alike, the extremes first."""
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
    equal(run(library, "floored", value, exponent % 31), value >> exponent % 31)


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


def test_reciprocals(library: ctypes.CDLL) -> None:
    """Every sum of exponentials is between 1 and 4095 in Q12.19."""
    value = np.clip(np.abs(integers(9)), 1 << 19, (1 << 31) - 1)
    mantissa, over = reciprocal(value)
    equal(run(library, "mantissa", value), mantissa)
    equal(run(library, "over", value), over)


def test_taps_inside(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(10)
    at, bound = rng.integers(-20, 20, 5000), rng.integers(-20, 20, 5000)
    dilation = rng.integers(1, 4, 5000)
    taps = at[:, None] + np.arange(60) * dilation[:, None]
    first = (taps < bound[:, None]).sum(1)
    equal(run(library, "first_tap", at, bound, dilation), first)
    equal(run(library, "end_tap", at, bound, dilation), np.minimum(first, 7))
