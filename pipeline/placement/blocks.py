"""What has to be placed: blocks of cells that live for some steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    """What stays where it is and changes its size: ``parts`` begin at one address, a multiple of
    ``align``; none overlaps another in time."""

    parts: tuple[Block, ...]
    align: int = 1

    @property
    def first(self) -> int:
        return min(part.first for part in self.parts)

    @property
    def last(self) -> int:
        return max(part.last for part in self.parts)

    @property
    def size(self) -> int:
        return max(part.size for part in self.parts)

    @property
    def area(self) -> int:
        return sum(part.size * (part.last - part.first + 1) for part in self.parts)

    def alive(self, step: int) -> bool:
        return any(part.first <= step <= part.last for part in self.parts)


class Overlap(NamedTuple):
    """Profile number ``over`` may share cells with number ``under`` while both live: anywhere but
    where ``low`` < its address - the other's < ``high``.

    An output that is written forwards over a dying input may begin ``gap`` cells after it, or
    lower: low = -gap, high = the input's size.
    """

    over: int
    under: int
    low: int
    high: int

    def shared(self, profiles: Sequence[Profile]) -> int:
        """The most cells that both can have in common."""
        over, under = profiles[self.over].size, profiles[self.under].size
        ends = ((d, max(d + over, under) - min(d, 0)) for d in (self.low, self.high))
        return max(0, over + under - min(union for _, union in ends))


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
