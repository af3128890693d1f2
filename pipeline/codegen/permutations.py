"""Moves whose source and target share bytes: each element's place is known, so are their cycles."""

import math
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
        small: places are computed by successor functions where these are known: less flash, and
            many times as long.
        cycles: how many places, then which, counted in pieces.
        called: the functions that are.
        nibbles, bytes: sizes of pieces that may begin within a byte, and of those that don't.
    """

    avr: bool = False
    small: bool = False
    cycles: list[int] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    nibbles: set[int] = field(default_factory=set)
    bytes: set[int] = field(default_factory=set)

    def call(
        self, source: IntArray, target: IntArray, nibbles: int, comment: str = ""
    ) -> Call | None:
        """Moves elements of ``nibbles``, (pixels, channels), from their first nibbles in ``source``
        to those in ``target``; None where everything is there already."""
        unit, taken, given = pieces(source, target, nibbles)
        base = int(min(taken.min(), given.min()))
        sources, targets = ((each - base) // unit for each in (taken, given))
        cycles, chains = decompose(sources.tolist(), targets.tolist())
        if not cycles and not chains:
            return None
        known = successor(sources, targets) if self.small else None
        numbers = [Argument(PLACE, Value(n)) for n in known or (len(cycles), len(chains))]
        if not known:
            places = [n for each in (*cycles, *chains) for n in (len(each), *each)]
            at = stored(self.cycles, places)
            numbers.insert(0, Argument(f"&nn_cycles[{PLACE}]", Value(at)))
        name = "nn_rotate" if known else "nn_permute"
        if unit % BYTE or base % BYTE:
            self.nibbles.add(unit)
            name, begins = f"{name}_{unit}", Argument(PLACE, Value(base))
        else:
            self.bytes.add(unit // BYTE)
            name = f"{name}_bytes_{unit // BYTE}"
            begins = Argument(f"&nn_arena[{PLACE}]", Value(base // BYTE))
        self.called.add(name)
        return Call(name, (*numbers, begins), comment)

    def code(self) -> str:
        """C of table and functions; "" without any moves."""
        if not self.called:
            return ""
        return render(
            "frame/permute.c.j2", bits=c_bits(self.cycles), moves=self,
            count="uint16_t" if len(self.cycles) < 1 << 16 else "uint32_t",
            rotates=any(name.startswith("nn_rotate") for name in self.called),
            written_out=WRITTEN_OUT if self.avr else 0,
        )  # fmt: skip


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


def successor(sources: IntArray, targets: IntArray) -> tuple[int, int] | None:
    """Return (h, w) of a transpose: i takes over what (i mod h) * w + i // h held; (0, w) of an
    inverse herringbone, (1, w) of that of an image which is turned by 180 degrees (Gural & Murmann
    2019, equations 5 and 6); None: it is none of these."""
    count, width = len(sources), math.isqrt(len(sources))
    if count >= 1 << 16 or targets.max() >= count:
        return None
    taken, place = np.full(count, -1), np.arange(count)
    taken[targets] = sources
    row, column = np.divmod(place, width)
    upper = row * (2 * width - row - 1) + column
    lower = column * (2 * width - column - 2) + width + row - 1
    square = np.where(column >= row, upper, lower) if width**2 == count else -place
    wide = int(taken[1 % count])
    high = max(1, count // max(1, wide))
    known = {
        (0, width): square,
        (1, width): count - 1 - square[::-1],
        (high, wide): place % high * wide + place // high,
    }
    return next((each for each, held in known.items() if (taken == held).all()), None)


def _follow(start: int, taken_from: dict[int, int]) -> Iterator[int]:
    yield start
    place = taken_from[start]
    while place != start:
        yield place
        if place not in taken_from:
            return
        place = taken_from[place]
