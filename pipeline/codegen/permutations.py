"""Moves whose source and target share bytes: each element's place is known, so are their cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.constants import c_bits, stored
from pipeline.codegen.render import render
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.graph.tensor import IntArray

BYTE = 2
"""Nibbles."""

WRITTEN_OUT = 8
"""Bytes."""

Cycle = tuple[int, ...]


@dataclass
class Permutations:
    """State that all moves share: the table ``nn_cycles``, and a function for each size of piece.

    Attributes:
        avr: a compiler whose loops for ``memcpy`` take longer than what is written out.
        cycles: how many places, then which, counted in pieces.
        nibbles, bytes: sizes of pieces that may begin within a byte, and of those that don't.
    """

    avr: bool = False
    cycles: list[int] = field(default_factory=list)
    nibbles: set[int] = field(default_factory=set)
    bytes: set[int] = field(default_factory=set)

    def call(
        self, source: IntArray, target: IntArray, nibbles: int, comment: str = ""
    ) -> Call | None:
        """Moves elements of ``nibbles``, (pixels, channels), from their first nibbles in ``source``
        to those in ``target``; None where everything is there already."""
        unit, taken, given = pieces(source, target, nibbles)
        base = int(min(taken.min(), given.min()))
        cycles, chains = decompose(*(((a - base) // unit).tolist() for a in (taken, given)))
        if not cycles and not chains:
            return None
        at = stored(self.cycles, [n for each in (*cycles, *chains) for n in (len(each), *each)])
        numbers = (Argument(PLACE, Value(len(each))) for each in (cycles, chains))
        if unit % BYTE or base % BYTE:
            self.nibbles.add(unit)
            name, begins = f"nn_permute_{unit}", Argument(PLACE, Value(base))
        else:
            self.bytes.add(unit // BYTE)
            name = f"nn_permute_bytes_{unit // BYTE}"
            begins = Argument(f"&nn_arena[{PLACE}]", Value(base // BYTE))
        return Call(name, (Argument(f"&nn_cycles[{PLACE}]", Value(at)), *numbers, begins), comment)

    def code(self) -> str:
        """C of table and functions; "" without any moves."""
        if not self.cycles:
            return ""
        return render(
            "frame/permute.c.j2",
            bits=c_bits(self.cycles),
            count="uint16_t" if len(self.cycles) < 1 << 16 else "uint32_t",
            moves=self,
            written_out=WRITTEN_OUT if self.avr else 0,
        )


def pieces(source: IntArray, target: IntArray, width: int) -> tuple[int, IntArray, IntArray]:
    """(nibbles of a piece, first ones of those taken, and of those given): whole pixels where they
    lie on one grid on both sides, else elements where they do, else bytes or nibbles.

    Args:
        source, target: (pixels, channels), first nibbles of elements ``width`` wide.
    """
    steps = np.concatenate([np.diff(source, axis=1), np.diff(target, axis=1)])
    if (steps == width).all() and _on_grid(source[:, 0], target[:, 0], source.shape[1] * width):
        return source.shape[1] * width, source[:, 0], target[:, 0]
    flat = source.reshape(-1), target.reshape(-1)
    unit = next(n for n in (width, BYTE, 1) if width % n == 0 and _on_grid(*flat, n))
    taken, given = ((side[:, None] + np.arange(0, width, unit)).reshape(-1) for side in flat)
    return unit, taken, given


def _on_grid(source: IntArray, target: IntArray, unit: int) -> bool:
    both = np.concatenate([source, target])
    return not ((both - both.min()) % unit).any()


def decompose(sources: list[int], targets: list[int]) -> tuple[list[Cycle], list[Cycle]]:
    """Cycles and chains of the copy ``targets[n] <- sources[n]``; what stays is left out.

    Each place takes over what its successor holds, the last one of a cycle what the first one held.
    """
    taken_from = {t: s for t, s in zip(targets, sources, strict=True) if t != s}
    read = set(taken_from.values())
    chains = [tuple(_follow(start, taken_from)) for start in taken_from if start not in read]
    done = {place for chain in chains for place in chain}
    cycles = []
    for start in taken_from:
        if start not in done:
            cycle = tuple(_follow(start, taken_from))
            done.update(cycle)
            cycles.append(cycle)
    return cycles, chains


def _follow(start: int, taken_from: dict[int, int]) -> Iterator[int]:
    yield start
    place = taken_from[start]
    while place != start:
        yield place
        if place not in taken_from:
            return
        place = taken_from[place]
