"""Addresses for pieces that change size while they stay where they are.

An accumulator of 32 bits shrinks to its tensor in place, so what has to be packed are profiles:
rectangles over steps that all begin at one address. Where each is a single rectangle the planner of
ordinary execution packs them; else first fits, those that did not fit under the bound served
earlier each time (squeaky wheel optimization: Joslin & Clements 1999).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.strategies.addresses import pack
from pipeline.strategies.arrangement import round_up
from pipeline.strategies.skyline import Block

ROUNDS = 400
EFFORT = 300_000


@dataclass(frozen=True)
class Profile:
    """``parts`` begin at one address, a multiple of ``align``; none overlaps another in time."""

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


@dataclass(frozen=True)
class Packed:
    """The address of each profile, the size of the arena, and the most that is held at once."""

    addresses: tuple[int, ...]
    cells: int
    bound: int


Rank = Callable[[Profile], tuple[int, ...]]

RANKS: tuple[Rank, ...] = (
    lambda p: (-p.size, p.first),
    lambda p: (p.first, -p.size),
    lambda p: (-p.area, p.first),
    lambda p: (p.first - p.last, -p.size),
    lambda p: (-p.last, -p.size),
)


def load(profiles: Sequence[Profile]) -> int:
    """The most cells held at once: no arena is smaller."""
    parts = [part for profile in profiles for part in profile.parts]
    return max(
        (
            sum(part.size for part in parts if part.first <= at <= part.last)
            for at in {part.first for part in parts}
        ),
        default=0,
    )


def packed(profiles: Sequence[Profile]) -> Packed:
    """The smallest arena found."""
    bound = load(profiles)
    if all(len(profile.parts) == 1 for profile in profiles):
        blocks = [profile.parts[0]._replace(align=profile.align) for profile in profiles]
        packing = pack(blocks, EFFORT)
        return Packed(packing.addresses, packing.cells, bound)
    best: Packed | None = None
    for rank in RANKS:
        squeaks = [0] * len(profiles)
        for _ in range(ROUNDS // len(RANKS)):
            served = sorted(range(len(profiles)), key=lambda n: (-squeaks[n], rank(profiles[n])))
            addresses = first_fit(profiles, served)
            tops = [address + p.size for address, p in zip(addresses, profiles, strict=True)]
            if best is None or max(tops) < best.cells:
                best = Packed(addresses, max(tops), bound)
            if best.cells == bound:
                return best
            for n, top in enumerate(tops):
                squeaks[n] += top > bound
    assert best is not None
    return best


def first_fit(profiles: Sequence[Profile], served: Sequence[int]) -> tuple[int, ...]:
    """Each profile, in the order ``served``, at the lowest address where it meets no other."""
    addresses: dict[int, int] = {}
    for n in served:
        own, base = profiles[n], 0
        taken = [  # an address strictly between the two would overlap
            (address - part.size, address + other.size)
            for m, address in addresses.items()
            for other in profiles[m].parts
            for part in own.parts
            if other.meets(part)
        ]
        while over := [high for low, high in taken if low < base < high]:
            base = round_up(max(over), own.align)
        addresses[n] = base
    return tuple(addresses[n] for n in range(len(profiles)))
