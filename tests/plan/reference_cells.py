"""What cells hold and what a step does to them, unit by unit and element by element.

Part of the reference verifier (``reference.py``). A cell holds (token, atoms): the token says which
part of which element it is, in which form; the atoms are those that an accumulator got so far, and
None for a final element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.plan.reference_places import Cell

Atoms = frozenset[tuple[int, int]] | None
"""(term, atom of the term) each; None: a final element."""
Token = tuple[str, str, int, int, int, int, int]
"""Tensor, form, bits, step, frame, element, which of its nibbles."""
Held = tuple[Token, Atoms]


class Element(NamedTuple):
    """One element in a buffer: a token for each of its cells."""

    cells: tuple[Cell, ...]
    tokens: tuple[Token, ...]


class Result(NamedTuple):
    """An element that is written; ``change`` makes its atoms from those of ``source``."""

    source: Element | None
    target: Element
    change: Callable[[Atoms], Atoms]


@dataclass
class Unit:
    """What is read wholly before any of ``results`` is written.

    ``taken`` lists the nibbles that are read of each stream, as often as they are.
    """

    reads: set[tuple[Cell, Token]] = field(default_factory=set)
    results: list[Result] = field(default_factory=list)
    taken: dict[str, list[int]] = field(default_factory=dict)

    def touched(self) -> Iterator[tuple[Cell, bool]]:
        """Every cell, and whether it is written."""
        for cell, _ in self.reads:
            yield cell, False
        for result in self.results:
            for cell in result.source.cells if result.source else ():
                yield cell, False
            for cell in result.target.cells:
                yield cell, True


@dataclass
class Deed:
    """A step, worked out: its units in order, the cells of scratch that it destroys, and how many
    elements of an operator's output it computes."""

    op: str
    units: list[Unit] = field(default_factory=list)
    scratch: set[Cell] = field(default_factory=set)
    computed: int = 0

    def touched(self) -> Iterator[tuple[Cell, bool]]:
        for unit in self.units:
            yield from unit.touched()
