"""Reads of steps, their times, and cells as strided views, against enumeration of elements."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graph.access import Operand, Window
from pipeline.plan import reads
from pipeline.plan.elements import Elements
from pipeline.plan.vocabulary import Affine, Buffer, PlanError, Table, packed
from tests.plan.reference_places import window

Place = tuple[int, ...]


@st.composite
def operands(draw: st.DrawFn) -> tuple[Operand, Place, Place]:
    """An operand of two axes, its tensor's shape and the output's."""
    out = (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    axes = draw(st.sampled_from([(0, 1), (1, 0), (None, 1), (0, None), (None, None)]))
    few, two = st.integers(1, 3), st.integers(1, 2)
    numbers = st.tuples(few, few, st.integers(-2, 2), two, st.sampled_from([1, 1, 2]))
    windows = tuple(Window(axis, *draw(numbers)) for axis in axes)
    return Operand("x", windows), (draw(st.integers(1, 7)), draw(st.integers(1, 7))), out


@settings(max_examples=200, derandomize=True)
@given(operands(), st.integers(0, 99))
def test_reads_and_their_times(case: tuple[Operand, Place, Place], seed: int) -> None:
    operand, shape, out = case
    rng = np.random.default_rng(seed)
    low = [int(rng.integers(0, n)) for n in out]
    box = tuple((a, int(rng.integers(a, n)) + 1) for a, n in zip(low, out, strict=True))
    times = rng.permutation(int(np.prod([b - a for a, b in box]))).reshape([b - a for a, b in box])
    inside = set(product(*(range(n) for n in shape)))
    when: dict[Place, list[int]] = {}
    for place in product(*(range(a, b) for a, b in box)):
        for element in inside.intersection(window(operand, place)):
            relative = tuple(p - a for p, (a, _) in zip(place, box, strict=True))
            when.setdefault(element, []).append(int(times[relative]))
    whole = tuple((0, n) for n in shape)
    grid = reads.read_indices(operand, box, whole)
    last = reads.read_times(operand, box, times, grid, last=True)
    first = reads.read_times(operand, box, times, grid, last=False)
    found = {}
    for n, element in enumerate(product(*(list(index) for index in grid))):
        if last.flat[n] != reads.NEVER:
            found[element] = (int(first.flat[n]), int(last.flat[n]))
    assert found == {element: (min(t), max(t)) for element, t in when.items()}
    available = tuple(
        (int(rng.integers(0, 2)), n - int(rng.integers(0, 2)) if n > 1 else n) for n in shape
    )
    missed = any(not all(a <= i < b for i, (a, b) in zip(e, available, strict=True)) for e in when)
    if reads.reads_all(operand, box, available, whole):
        assert not missed
    elif when:  # said axis by axis: something outside is read along one of them
        assert missed


@st.composite
def buffers(draw: st.DrawFn) -> Buffer:
    shape = tuple(draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 3))))
    bits = draw(st.sampled_from([4, 8, 16]))
    kind = draw(st.sampled_from(["packed", "packed", "strided", "ring", "table"]))
    width = bits // 4
    if kind == "packed":
        return Buffer(
            "x", "x", "sram", shape, bits, packed(shape, bits, 2 * draw(st.integers(0, 5)))
        )
    if kind == "table":
        cells = draw(st.permutations(range(int(np.prod(shape)))))
        return Buffer("x", "x", "sram", shape, bits, Table(tuple(4 * width * n for n in cells)))
    strides = tuple(width * draw(st.integers(-6, 12)) for _ in shape)
    wrap = tuple(draw(st.integers(0, 4)) for _ in shape) if kind == "ring" else ()
    return Buffer("x", "x", "sram", shape, bits, Affine(200, strides, wrap))


@pytest.mark.ci
@settings(max_examples=500, derandomize=True)
@given(buffers(), st.integers(0, 99))
def test_a_patch_is_its_cells(buffer: Buffer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = tuple(
        reads.progression(np.sort(rng.choice(n, int(rng.integers(1, n + 1)), replace=False)))
        for n in buffer.shape
    )
    patch = Elements(buffer, axes)
    cells = {
        place: int(buffer.addresses(tuple((i, i + 1) for i in place)).item())
        for place in product(*(list(axis) for axis in axes))
    }
    assert patch.addresses.reshape(-1).tolist() == list(cells.values())
    assert patch.numbers.reshape(-1).tolist() == [
        int(np.ravel_multi_index(place, buffer.shape)) for place in cells
    ]
    low, high = patch.extent
    assert low <= min(cells.values()) and max(cells.values()) + buffer.nibbles <= high
    everything = buffer.cells(buffer.box)
    assert buffer.extent[0] <= everything.min() and everything.max() < buffer.extent[1]
    assert buffer.starts_on_bytes == (not (buffer.addresses(buffer.box) % 2).any())
    if patch.apart:
        assert len(set(patch.cells.reshape(-1).tolist())) == patch.cells.size
    for granule in (1, 2, 3, 1024):
        touched = np.unique(patch.cells // granule)
        assert patch.granules(granule).tolist() == touched.tolist()
    if (start := buffer.run(buffer.box)) is not None:
        count = everything.size
        assert everything.reshape(-1).tolist() == list(range(start, start + count))
    for grain in (1, 2) if buffer.bits >= 8 else (1,):
        memory = rng.integers(0, 1 << 30, buffer.extent[1] // grain + 1)
        parts = buffer.nibbles // grain
        wanted = [[memory[first // grain + p] for p in range(parts)] for first in cells.values()]
        assert patch.take(memory, grain).reshape(-1, parts).tolist() == wanted
        patch.put(memory, grain, -1)
        touched = {first // grain + p for first in cells.values() for p in range(parts)}
        assert set(np.flatnonzero(memory == -1).tolist()) == touched


@pytest.mark.parametrize("unit", [(), (1, 1), (2, 3), (4, 5), (9, 9)])
def test_unit_times_count_blocks(unit: Place) -> None:
    times = reads.unit_times((4, 5), unit, ())
    step = unit or (1, 1)
    across = -(-5 // step[1])
    for row, column in product(range(4), range(5)):
        assert times[row, column] == row // step[0] * across + column // step[1]


def test_orders_are_checked() -> None:
    assert reads.unit_times((2, 2), (1, 2), ((1, 0), (0, 0))).tolist() == [[1, 1], [0, 0]]
    for unit, order, said in (
        ((0, 1), (), "units of"),
        ((1, 1, 1), (), "units of"),
        ((2, 1), ((1, 0), (0, 1)), "each unit once"),
        ((1, 2), ((0, 0), (0, 0)), "each unit once"),
        ((1, 2), ((0, 0), (2, 0)), "each unit once"),
        ((1, 2), ((0, 0),), "names 1 of 2"),
    ):
        with pytest.raises(PlanError, match=said):
            reads.check_units((2, 2), unit, order)
