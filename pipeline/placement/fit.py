"""First fits: profiles one after the other at the lowest address that what is placed leaves them.

Those that end above a limit are served earlier in the next round, at a place of chance ("squeaky
wheel optimization": Joslin & Clements 1999).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import UNIT, Interference, Profile, round_up, unpack

NOWHERE = -(1 << 30)
"""The address of what is not placed: it is in nobody's way."""

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
    at = np.full(len(profiles), NOWHERE * UNIT)
    addresses = dict(fixed)
    for n, address in fixed.items():
        at[n] = address * UNIT
    for n in served:
        others, packed = interference[n]
        taken = packed + at[others]
        taken.sort()
        base = _lowest(*unpack(taken), profiles[n].align) if len(taken) else 0
        at[n], addresses[n] = base * UNIT, base
    return addresses


def _lowest(starts: IntArray, ends: IntArray, align: int) -> int:
    """The lowest multiple of ``align`` in no interval; they are sorted by their starts."""
    if starts[0] >= 0:
        return 0
    if ends[0] < 0:
        ends[0] = 0
    np.maximum.accumulate(ends, out=ends)  # up to each
    for place in (starts[1:] >= ends[:-1]).nonzero()[0].tolist():
        base = round_up(int(ends[place]), align)
        if starts[place + 1] >= base:
            return base
    return round_up(int(ends[-1]), align)


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
        for number in range(rounds if inner else 1):
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
