"""The least peak of all orders of a few operators' outputs, element by element or in larger units.

Shares nothing with the planners: a unit reads cells and makes one; what nothing reads any more is
gone before a unit's output is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import Pool2d

Cell = tuple[str, int, int, int]
"""Tensor, row, column, channel or group of channels."""

NEVER = np.iinfo(np.int64).max


class Unit(NamedTuple):
    """``nibbles`` of ``makes``, made of all of ``reads``."""

    reads: frozenset[Cell]
    makes: Cell
    nibbles: int


def least(units: Sequence[Unit], given: dict[Cell, int]) -> int:
    """By dynamic programming over the sets of units already computed. ``given``: nibbles of what is
    there at first; what no unit reads is held to the end if it was made, and gone if it was given,
    but not before the first unit."""
    number = len(units)
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
    best = np.where(sets == 0, live[0], NEVER)
    counts = np.bitwise_count(sets)
    for count in range(1, number + 1):
        chosen = np.flatnonzero((counts == count) & valid)
        for n in range(number):
            has = chosen[(chosen >> n) & 1 == 1]
            best[has] = np.minimum(best[has], best[has & ~(1 << n)])
        best[chosen] = np.maximum(best[chosen], live[chosen])
    return int(best[-1])


def units_of(op: Operator, tensors: Tensors) -> list[Unit]:
    """Pixel by pixel where each channel reads all of its window, else channel by channel: what
    reads the same dies together, so that nothing is gained by splitting it."""
    assert isinstance(op, Conv2d | Pool2d)
    source, target = tensors[op.inputs[0]], tensors[op.output]
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
