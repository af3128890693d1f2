"""Atoms of its sum that an accumulator already holds, as interned bit masks.

Elements of a slice fall into few classes (borders, channel groups); a mask is made once a class.
Steps that are alike share what they need: the classes along an axis, and the masks of classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from pipeline.graph.access import Term, Window
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.reads import positions

Bits = npt.NDArray[np.bool_]
Available = Mapping[str, Box]
Kind = tuple[bytes, ...]
"""Flags: whether each index of some windows is available, in one ``Available`` after another."""


@dataclass(frozen=True)
class Line:
    """Classes of elements along one axis of the output, by the windows that move along it.

    Attributes:
        number: of ``kinds``.
        kinds: what is available to each class.
        each: the class of each index.
    """

    number: int
    kinds: tuple[Kind, ...]
    each: IntArray

    @cached_property
    def counts(self) -> IntArray:
        """Count the indices of each class."""
        return np.bincount(self.each, minlength=len(self.kinds))


class Masks:
    """Interned sets of atoms: small integers stand for Python-int bit masks; 0 is empty."""

    def __init__(self) -> None:
        self._masks: list[int] = [0]
        self._ids: dict[int, int] = {0: 0}
        self.atoms: list[int] = [0]
        self._windows: dict[int, _Windows] = {}
        self._lines: dict[Hashable, Line] = {}
        self._numbers: dict[tuple[Kind, ...], int] = {}
        self.known: dict[Hashable, list[IntArray]] = {}

    def intern(self, mask: int) -> int:
        if mask not in self._ids:
            self._ids[mask] = len(self._masks)
            self._masks.append(mask)
            self.atoms.append(mask.bit_count())
        return self._ids[mask]

    def windows(self, terms: tuple[Term, ...]) -> _Windows:
        if id(terms) not in self._windows:
            self._windows[id(terms)] = _Windows(terms)
        return self._windows[id(terms)]

    def line(
        self, windows: _Windows, axis: int | None, out: Box, availables: Sequence[Available]
    ) -> Line:
        """Return the classes along ``axis`` of ``out``; with None all are of one."""
        places = windows.along[axis]
        ranges = tuple(
            available[tensor][d] if tensor in available else (0, 0)
            for available in availables
            for tensor, d, _ in places
        )
        span = (0, 1) if axis is None else out[axis]
        key = id(windows), axis, span, ranges
        if key not in self._lines:
            every = [window for _, _, window in places] * len(availables)
            rows = [_inside(window, out, low, high)
                    for window, (low, high) in zip(every, ranges, strict=True)]  # fmt: skip
            none = np.zeros((span[1] - span[0], 0), dtype=bool)
            first, each = _alike(np.concatenate([none, *rows], axis=1))
            kinds = tuple(tuple(row[n].tobytes() for row in rows) for n in first)
            number = self._numbers.setdefault(kinds, len(self._numbers))
            self._lines[key] = Line(number, kinds, each)
        return self._lines[key]

    def __getitem__(self, number: int) -> int:
        return self._masks[number]

    def __len__(self) -> int:
        return len(self._masks)


class _Windows:
    """Those of ``terms`` by the axis that they move along, each with its tensor and its place."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self.along = defaultdict[int | None, list[tuple[str, int, Window]]](list)
        for operand in (operand for term in terms for operand in term.operands):
            for d, window in enumerate(operand.windows):
                self.along[window.axis].append((operand.tensor, d, window))

    def mask(self, kinds: Mapping[int | None, Iterator[bytes]]) -> int:
        """Join the terms one after another; an atom counts where it does for all operands."""
        parts = []
        for term in self.terms:
            held = None
            for operand in term.operands:
                atoms = np.ones(1, dtype=bool)
                for window in operand.windows:
                    row = np.frombuffer(next(kinds[window.axis]), dtype=bool)
                    atoms = np.outer(atoms, row).reshape(-1)
                held = atoms if held is None else held & atoms
            assert held is not None
            parts.append(held)
        packed = np.packbits(np.concatenate(parts), bitorder="little")
        return int.from_bytes(packed.tobytes(), "little")


@dataclass(frozen=True)
class Shares:
    """Mask ids by class of elements along each axis."""

    ids: IntArray
    lines: tuple[Line, ...]

    def each(self) -> IntArray:
        """Return the mask id of each element."""
        return np.asarray(self.ids[np.ix_(*(line.each for line in self.lines))])

    def counts(self) -> IntArray:
        """Count the elements of each class; the shape of ``ids``."""
        total = np.ones((), dtype=np.int64)
        for line in self.lines:
            total = np.multiply.outer(total, line.counts)
        return np.asarray(total)


def contributed(
    masks: Masks, terms: tuple[Term, ...], out: Box, availables: Sequence[Available]
) -> list[Shares]:
    """The atoms that each element of ``out`` gets, for each way in which operands are available.

    An atom counts when every one of its operands' elements is inside its tensor's available box;
    a tensor that is not available gives nothing. The classes are the same for all.
    """
    windows, axes = masks.windows(terms), (None, *range(len(out)))
    lines = tuple(masks.line(windows, axis, out, availables) for axis in axes)
    key = id(windows), len(availables), *(line.number for line in lines)
    if key not in masks.known:
        masks.known[key] = [np.zeros([len(line.kinds) for line in lines[1:]], dtype=np.int64)
                            for _ in availables]  # fmt: skip
        for way, ids in enumerate(masks.known[key]):
            for place in product(*(range(len(line.kinds)) for line in lines)):
                kinds = dict[int | None, Iterator[bytes]]()
                for axis, line, n in zip(axes, lines, place, strict=True):
                    count = len(windows.along[axis])
                    kinds[axis] = iter(line.kinds[n][way * count :][:count])
                ids[place[1:]] = masks.intern(windows.mask(kinds))
    return [Shares(ids, lines[1:]) for ids in masks.known[key]]


def _alike(rows: Bits) -> tuple[list[int], IntArray]:
    """Find which of ``rows`` (n, k) are the first of their kind, and the kind of each row."""
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


def _inside(window: Window, out: Box, low: int, high: int) -> Bits:
    """(outputs along the window's axis, count): is the index that it reads available?"""
    index = positions(window, out)
    return np.asarray((index >= low) & (index < high))
