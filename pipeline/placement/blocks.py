"""What has to be placed: blocks of cells that live for some steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

WORD = 8
"""Nibbles of the widest accumulator."""


class Block(NamedTuple):
    """``size`` cells, at a multiple of ``align``, from step ``first`` to step ``last``."""

    size: int
    first: int
    last: int
    align: int = 1

    def meets(self, other: Block) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Profile:
    """What keeps its shape: ``parts`` begin at one address, a multiple of ``align``, or
    ``offsets`` above it. No two share a cell while both live."""

    parts: tuple[Block, ...]
    align: int = 1
    offsets: tuple[int, ...] = ()

    @cached_property
    def first(self) -> int:
        return min(part.first for part in self.parts)

    @cached_property
    def last(self) -> int:
        return max(part.last for part in self.parts)

    @cached_property
    def size(self) -> int:
        return max(offset + part.size for offset, part in self.placed)

    @cached_property
    def area(self) -> int:
        return sum(part.size * (part.last - part.first + 1) for part in self.parts)

    @property
    def placed(self) -> list[tuple[int, Block]]:
        """Each part with its offset."""
        offsets = self.offsets or (0,) * len(self.parts)
        return list(zip(offsets, self.parts, strict=True))


Place = tuple[int, int]
"""The number of a profile, and of a part of it."""


class Overlap(NamedTuple):
    """Part ``over`` may share cells with part ``under`` while both live: anywhere but where
    ``low`` < its address - the other's < ``high``.

    An output that is written forwards over a dying input may begin ``gap`` cells after it, or
    lower: low = gap, high = the input's size.
    """

    over: Place
    under: Place
    low: int
    high: int

    def shared(self, profiles: Sequence[Profile]) -> int:
        """The most cells that both can have in common."""
        over, under = (profiles[n].parts[part].size for n, part in (self.over, self.under))
        return shared(over, under, self.low, self.high)


def shared(over: int, under: int, low: int, high: int) -> int:
    """The most cells that blocks of two sizes can have in common; see ``Overlap``."""
    # one lies in the other from ``least`` to ``most``; as near to that as is allowed
    least, most = sorted((0, under - over))
    apart = min(low, most), max(high, least)
    return max(0, over + under - min(max(d + over, under) - min(d, 0) for d in apart))


def load(blocks: Sequence[Block]) -> int:
    """The most cells that live at once: no arena is smaller."""
    return max(
        (
            sum(b.size for b in blocks if b.first <= at <= b.last)
            for at in {b.first for b in blocks}
        ),
        default=0,
    )


def round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
