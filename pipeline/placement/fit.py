"""First fits: profiles one after the other at the lowest address that what is placed leaves them.

Those that end above a limit are served earlier in the next round, at a place of chance ("squeaky
wheel optimization": Joslin & Clements 1999).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple

from pipeline.placement.blocks import Interference, Profile, round_up

Rank = Callable[[Profile], tuple[int, int]]

RANKS: tuple[Rank, ...] = (
    lambda p: (-p.size, p.first),
    lambda p: (p.first, -p.size),
    lambda p: (p.first - p.last, -p.size),
    lambda p: (-p.area, p.first),
    lambda p: (-p.last, -p.size),
)


class Fitted(NamedTuple):
    """The end of the highest profile, and the address of each."""

    top: int
    addresses: dict[int, int]


def first_fit(
    profiles: Sequence[Profile],
    interference: Interference,
    served: Sequence[int],
    fixed: Mapping[int, int],
) -> dict[int, int]:
    """Those ``served``, in this order, each at the lowest address at which it meets none, beside
    those that are ``fixed``."""
    at: list[int | None] = [None] * len(profiles)
    addresses = dict(fixed)
    for n, address in fixed.items():
        at[n] = address
    for n in served:
        align, base = profiles[n].align, 0
        taken = [
            (a + low, a + high) for m, low, high in interference[n] if (a := at[m]) is not None
        ]
        for low, high in sorted(taken):
            if low >= base:
                break
            if high > base:
                base = round_up(high, align)
        at[n] = addresses[n] = base
    return addresses


def squeaky(
    profiles: Sequence[Profile],
    interference: Interference,
    inner: Collection[int],
    fixed: Mapping[int, int],
    limit: int,
    rounds: int,
    ranks: Sequence[Rank] = RANKS,
    by_turns: bool = False,
) -> Fitted:
    """The lowest top found in ``rounds`` for each of ``ranks``, of ``inner`` beside those that are
    ``fixed``: within ``limit`` it is low enough. Deterministic.

    Args:
        by_turns: those that end above the limit are served earlier after every other round only;
            after the others just those that have to be lower for a lower top.
    """
    chance, best = Random(0), None
    for rank in ranks:
        served = sorted(inner, key=lambda n: rank(profiles[n]))
        for number in range(rounds):
            addresses = first_fit(profiles, interference, served, fixed)
            tops = {n: at + profiles[n].size for n, at in addresses.items()}
            top = max(tops.values(), default=0)
            if best is None or top < best.top:
                best = Fitted(top, addresses)
            if best.top <= limit:
                return best
            high = best.top - 1 if by_turns and number % 2 == 0 else limit
            turn = {
                n: place * chance.random() - 1 if tops[n] > high else place
                for place, n in enumerate(served)
            }
            served.sort(key=turn.__getitem__)
    assert best is not None
    return best
