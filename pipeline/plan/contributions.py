"""Which atoms of its sum an accumulator already holds, as interned bit masks.

Elements of a slice fall into few classes (borders, channel groups); a mask is made once a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from pipeline.graph.access import Operand, Term
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.reads import positions

Bits = npt.NDArray[np.bool_]
Rows = tuple[tuple[tuple[bytes, ...], ...], ...]
"""For each term, operand and axis the window's indices, and whether each is available."""


class Masks:
    """Interned sets of atoms: small integers stand for Python-int bit masks; 0 is empty."""

    def __init__(self) -> None:
        self._masks: list[int] = [0]
        self._ids: dict[int, int] = {0: 0}
        self._of: dict[Rows, int] = {}

    def intern(self, mask: int) -> int:
        if mask not in self._ids:
            self._ids[mask] = len(self._masks)
            self._masks.append(mask)
        return self._ids[mask]

    def of(self, rows: Rows) -> int:
        if rows not in self._of:
            self._of[rows] = self.intern(_mask(rows))
        return self._of[rows]

    def __getitem__(self, number: int) -> int:
        return self._masks[number]

    def __len__(self) -> int:
        return len(self._masks)


@dataclass(frozen=True)
class Shares:
    """Mask ids by class of elements; ``classes[d]`` is the class of each index along axis d."""

    ids: IntArray
    classes: tuple[IntArray, ...]

    def each(self) -> IntArray:
        """The mask id of each element."""
        return np.asarray(self.ids[np.ix_(*self.classes)])

    def counts(self) -> IntArray:
        """How many elements each class has; the shape of ``ids``."""
        total = np.ones((), dtype=np.int64)
        for number, classes in zip(self.ids.shape, self.classes, strict=True):
            total = np.multiply.outer(total, np.bincount(classes, minlength=number))
        return np.asarray(total)


def contributed(
    masks: Masks, terms: tuple[Term, ...], out: Box, availables: Sequence[Mapping[str, Box]]
) -> list[Shares]:
    """The atoms that each element of ``out`` gets, for each way in which operands are available.

    An atom counts when every one of its operands' elements is inside its tensor's available box;
    a tensor that is not available gives nothing. The classes are the same for all.
    """
    firsts, classes = [], []
    for axis in range(len(out)):
        rows = np.concatenate(
            [
                _inside(operand, d, out, available)
                for available in availables
                for term in terms
                for operand in term.operands
                for d, window in enumerate(operand.windows)
                if window.axis == axis
            ]
            or [np.zeros((out[axis][1] - out[axis][0], 0), dtype=bool)],
            axis=1,
        )
        first, each = _alike(rows)
        firsts.append(first)
        classes.append(each)
    result = []
    for available in availables:
        ids = np.zeros([len(first) for first in firsts], dtype=np.int64)
        for place in product(*(range(len(first)) for first in firsts)):
            chosen = tuple(first[n] for first, n in zip(firsts, place, strict=True))
            ids[place] = masks.of(_rows(terms, out, available, chosen))
        result.append(Shares(ids, tuple(classes)))
    return result


def _alike(rows: Bits) -> tuple[list[int], IntArray]:
    """Which of ``rows`` (n, k) are the first of their kind, and of which kind each is."""
    changes = (rows[1:] != rows[:-1]).any(axis=1)
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    kinds: dict[bytes, int] = {}
    firsts, numbers = list[int](), list[int]()
    for start in starts:
        number = kinds.setdefault(rows[start].tobytes(), len(kinds))
        if number == len(firsts):
            firsts.append(start)
        numbers.append(number)
    lengths = np.diff([*starts, len(rows)])
    return firsts, np.repeat(np.array(numbers, dtype=np.int64), lengths)


def _inside(operand: Operand, d: int, out: Box, available: Mapping[str, Box]) -> Bits:
    """(outputs along the window's axis, count): is the index along axis ``d`` available?"""
    index = positions(operand.windows[d], out)
    low, high = available[operand.tensor][d] if operand.tensor in available else (0, 0)
    return np.asarray((index >= low) & (index < high))


def _rows(
    terms: tuple[Term, ...], out: Box, available: Mapping[str, Box], place: tuple[int, ...]
) -> Rows:
    """Say what of each window is available to the output at ``place`` (relative to ``out``)."""
    return tuple(
        tuple(
            tuple(
                _inside(operand, d, out, available)[
                    0 if window.axis is None else place[window.axis]
                ].tobytes()
                for d, window in enumerate(operand.windows)
            )
            for operand in term.operands
        )
        for term in terms
    )


def _mask(rows: Rows) -> int:
    """Join the terms one after another; an atom counts where it does for all operands."""
    parts = []
    for term in rows:
        held = None
        for operand in term:
            atoms = np.ones(1, dtype=bool)
            for row in operand:
                atoms = np.outer(atoms, np.frombuffer(row, dtype=bool)).reshape(-1)
            held = atoms if held is None else held & atoms
        assert held is not None
        parts.append(held)
    packed = np.packbits(np.concatenate(parts), bitorder="little")
    return int.from_bytes(packed.tobytes(), "little")
