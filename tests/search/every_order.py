"""The least peak of all orders of a few operators' outputs, element by element or in larger units.

Shares nothing with the planners: a unit reads cells and makes one; what nothing reads any more is
gone before a unit's output is stored.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import Tensor

Cell = tuple[str, int, int, int]
"""Tensor, row, column, channel or group of channels."""

NEVER = np.iinfo(np.int64).max


class Unit(NamedTuple):
    """``nibbles`` of ``makes``, made of all of ``reads``."""

    reads: frozenset[Cell]
    makes: Cell
    nibbles: int


def least(units: Sequence[Unit], given: dict[Cell, int]) -> int:
    """Return the least peak where dying inputs are gone before a unit's output is stored."""
    return least_and_stored_first(units, given)[0]


def least_and_stored_first(units: Sequence[Unit], given: dict[Cell, int]) -> tuple[int, int]:
    """By dynamic programming over the sets of units already computed. ``given``: nibbles of what is
    there at first; what no unit reads is held to the end if it was made, and gone if it was given,
    but not before the first unit. The channels of a pixel may be written together, once what all
    of them read has been read. And the least where outputs are stored before inputs are gone."""
    number, pixels = len(units), dict[tuple[str, int, int], int]()
    for n, unit in enumerate(units):
        pixels[unit.makes[:3]] = pixels.get(unit.makes[:3], 0) | 1 << n
    moves = {1 << n for n in range(number)} | set(pixels.values())
    sets = np.arange(1 << number, dtype=np.int64)
    made_by = {unit.makes: n for n, unit in enumerate(units)}
    size = {**given, **{unit.makes: unit.nibbles for unit in units}}
    live = np.zeros(len(sets), dtype=np.int64)
    valid = np.ones(len(sets), dtype=bool)
    for cell, nibbles in size.items():
        readers = sum(1 << n for n, unit in enumerate(units) if cell in unit.reads)
        there = np.ones(len(sets), dtype=bool)
        if cell in made_by:
            there = (sets >> made_by[cell]) & 1 == 1
            valid &= there | (sets & readers == 0)
        final = cell in made_by and not readers
        live += nibbles * (there & (final | (~sets & readers != 0)))
    live[0] = sum(given.values())
    after = np.where(sets == 0, live[0], NEVER)
    before, counts = after.copy(), np.bitwise_count(sets)
    for count in range(1, number + 1):
        chosen = np.flatnonzero((counts == count) & valid)
        for move in moves:
            made = sum(unit.nibbles for n, unit in enumerate(units) if move >> n & 1)
            has = chosen[chosen & move == move]
            last = has & ~move
            after[has] = np.minimum(after[has], after[last])
            before[has] = np.minimum(before[has], np.maximum(before[last], live[last] + made))
        after[chosen] = np.maximum(after[chosen], live[chosen])
    return int(after[-1]), int(before[-1])


def peak(units: Sequence[Unit], given: dict[Cell, int]) -> int:
    """Return the peak of this order of units that make what no other reads."""
    most = sum(given.values())
    for n in range(1, len(units) + 1):
        later = set().union(*(unit.reads for unit in units[n:]))
        inputs = sum(nibbles for cell, nibbles in given.items() if cell in later)
        most = max(most, inputs + sum(unit.nibbles for unit in units[:n]))
    return most


def units_of(op: Operator, tensors: Tensors) -> list[Unit]:
    """Pixel by pixel where each channel reads all of its window, else channel by channel: what
    reads the same dies together, so that nothing is gained by splitting it."""
    source, target = tensors[op.inputs[0]], tensors[op.output]
    if isinstance(op, Add):
        each = target.shape[2] * target.dtype.bits // 4
        return [
            Unit(frozenset((name, *pixel, 0) for name in op.inputs), (target.name, *pixel, 0), each)
            for pixel in product(*map(range, target.shape[:2]))
        ]
    assert isinstance(op, Conv2d | Pool2d)
    height, width, channels = source.shape
    groups = op.groups if isinstance(op, Conv2d) else channels
    kernel = tensors[op.parameters[0]].shape[1:3] if isinstance(op, Conv2d) else op.kernel
    dilation = op.dilation if isinstance(op, Conv2d) else (1, 1)
    nibbles = target.shape[2] // groups * target.dtype.bits // 4
    found = []
    for y, x, group in product(*map(range, target.shape[:2]), range(groups)):
        rows, columns = (
            [n * stride - before + tap * step for tap in range(taps)]
            for n, stride, before, taps, step in zip(
                (y, x), op.stride, op.padding[::2], kernel, dilation, strict=True
            )
        )
        reads = frozenset(
            (source.name, row, column, group)
            for row, column in product(rows, columns)
            if 0 <= row < height and 0 <= column < width
        )
        found.append(Unit(reads, (target.name, y, x, group), nibbles))
    return found


def given_to(op: Operator, tensors: Tensors) -> dict[Cell, int]:
    """The cells of ``op``'s input."""
    source = tensors[op.inputs[0]]
    groups = op.groups if isinstance(op, Conv2d) else source.shape[2]
    nibbles = source.shape[2] // groups * source.dtype.bits // 4
    box = product(*map(range, source.shape[:2]), range(groups))
    return {(source.name, y, x, group): nibbles for y, x, group in box}


def all_channels(units: Sequence[Unit], groups: int) -> list[Unit]:
    """``units`` that read pixels whose channels were made in ``groups``."""
    return [
        unit._replace(reads=frozenset((*cell[:3], n) for cell in unit.reads for n in range(groups)))
        for unit in units
    ]


def by_byte(
    units: Sequence[Unit], given: dict[Cell, int], source: Tensor
) -> tuple[list[Unit], dict[Cell, int]]:
    """The same where bytes are written over ``source``, elements of 4 bits row-major in one piece:
    a byte of it is free once both halves are dead. Wherever a byte then lies, all free ones are
    alike, so that the least of all orders is that of all addresses, too."""
    groups = len({group for *_, group in given})
    elements = np.arange(source.size).reshape(*source.shape[:2], groups, -1) // 2
    cells = {cell: {(cell[0], int(n), 0, 0) for n in elements[*cell[1:]]} for cell in given}
    reads = (
        frozenset(part for cell in unit.reads for part in cells.get(cell, {cell})) for unit in units
    )
    sizes = np.bincount(elements.reshape(-1))
    return (
        [unit._replace(reads=read) for unit, read in zip(units, reads, strict=True)],
        {(source.name, n, 0, 0): int(size) for n, size in enumerate(sizes)},
    )
