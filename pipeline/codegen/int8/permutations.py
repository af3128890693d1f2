"""Moves whose source and target share bytes: each element's place is known, so are their cycles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.cycles import decompose
from pipeline.codegen.render import render
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.vocabulary import Buffer


@dataclass
class Permutations:
    """What all moves share: the table ``nn_byte_cycles``, and a function for each size of piece.

    Attributes:
        cycles: how many places, then which, counted in pieces.
        units: sizes in bytes.
    """

    cycles: list[int] = field(default_factory=list)
    units: set[int] = field(default_factory=set)

    def call(
        self, source: IntArray, target: IntArray, width: int, comment: str = ""
    ) -> Call | None:
        """Moves elements ``width`` bytes wide, (pixels, channels), from their first bytes in
        ``source`` to those in ``target``; None where everything is there already."""
        unit, taken, given = pieces(source, target, width)
        base = int(min(taken.min(), given.min()))
        places = [((a - base) // unit).tolist() for a in (taken, given)]
        cycles, chains = decompose(*places)
        if not cycles and not chains:
            return None
        at = len(self.cycles)
        for held in (*cycles, *chains):
            self.cycles += (len(held), *held)
        self.units.add(unit)
        arguments = (
            Argument(f"&nn_byte_cycles[{PLACE}]", Value(at)),
            Argument(PLACE, Value(len(cycles))),
            Argument(PLACE, Value(len(chains))),
            Argument(f"&nn_arena[{PLACE}]", Value(base)),
        )
        return Call(f"nn_permute_bytes_{unit}", arguments, comment)

    def code(self) -> str:
        """C of table and functions; "" without any moves."""
        if not self.cycles:
            return ""
        bits = 16 if max(self.cycles) < 1 << 16 else 32
        return render("int8/permute.c.j2", bits=bits, cycles=self.cycles, units=sorted(self.units))


def first_bytes(buffer: Buffer, box: Box) -> IntArray:
    """Of the elements of ``box``, in its shape."""
    extents = [stop - start for start, stop in box]
    return np.broadcast_to(buffer.addresses(box), extents) // 2


def pieces(source: IntArray, target: IntArray, width: int) -> tuple[int, IntArray, IntArray]:
    """(bytes of a piece, first bytes of those taken, and of those given): whole pixels where they
    lie on one grid on both sides, else elements where they do, else bytes.

    Args:
        source, target: (pixels, channels), first bytes of elements ``width`` bytes wide.
    """
    steps = np.concatenate([np.diff(source, axis=1), np.diff(target, axis=1)])
    if (steps == width).all() and _on_grid(source[:, 0], target[:, 0], source.shape[1] * width):
        return source.shape[1] * width, source[:, 0], target[:, 0]
    flat = source.reshape(-1), target.reshape(-1)
    if _on_grid(*flat, width):
        return width, *flat
    each = (side[:, None] + np.arange(width) for side in flat)
    taken, given = (side.reshape(-1) for side in each)
    return 1, taken, given


def _on_grid(source: IntArray, target: IntArray, unit: int) -> bool:
    both = np.concatenate([source, target])
    return not ((both - both.min()) % unit).any()
