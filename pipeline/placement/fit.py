"""First fits, profiles one after the other at the lowest address that what is placed leaves them,
and how they are mended.

What ends above a limit is taken out and put where the least is in its way, which is taken out in
turn. What has been taken out often is put first, and others rather go elsewhere: its weight grows
(as in "breakout": P. Morris 1993, and with ejections: Glover 1996).
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import Conflicts, Interference, Profiles

NOWHERE = -(1 << 30)
"""The address of what is not placed: it is in nobody's way."""

Rank = Callable[[Profiles], tuple[IntArray, IntArray]]

RANKS: tuple[Rank, ...] = (
    lambda p: (-p.size, p.first),
    lambda p: (p.first, -p.size),
    lambda p: (p.first - p.last, -p.size),
    lambda p: (-p.area, p.first),
    lambda p: (-p.last, -p.size),
)

FITS = 20_000
"""Profiles that are fitted at first: as many of ``RANKS`` as that allows, but one."""

PATIENCE = 400
"""Moves after which a limit is given up; the next one is nearer to what was reached."""

HEAVIER = 500
"""A weight grows by a part in so many more with each move, to ``HEAVIEST``."""

HEAVIEST = 1 << 40

LAST = 2_500
"""Moves from the best of what was reached, at most."""

NEAREST = 64
"""A limit is as far below what was reached as a part of the distance to the bound: a half, or a
half of that for each limit given up, down to this part; then it is a cell."""


class Fitted(NamedTuple):
    """The end of the highest profile, and the address of each."""

    top: int
    addresses: IntArray


def first_fit(interference: Interference, served: Iterable[int], fixed: IntArray) -> IntArray:
    """Return the addresses of profiles: of those ``served``, in this order, each the lowest at
    which it meets none; of others those that are ``fixed``."""
    at = fixed.copy()
    for n in served:
        at[n] = _lowest(*interference[n].beside(at), int(interference.profiles.align[n]))
    return at


def _lowest(starts: IntArray, ends: IntArray, align: int) -> int:
    """Return the lowest multiple of ``align`` in no interval."""
    order = starts.argsort(kind="stable")  # fast where much is in order
    ends = np.maximum.accumulate(np.append(0, ends[order]))  # up to each
    bases = -(-ends // align) * align
    free = np.append(starts[order] >= bases[:-1], True)
    return int(bases[free.argmax()])


def fitted(interference: Interference, bound: int, moves: int) -> Fitted:
    """Return the lowest top found in so many ``moves`` from all first fits, and in a sixth as many,
    up to ``LAST``, from the best of what they led to; ``bound`` is low enough. Deterministic."""
    ways, profiles = list[tuple[int, int, IntArray]](), interference.profiles
    nowhere = np.full(len(profiles), NOWHERE)
    for number, rank in enumerate(RANKS[: max(1, FITS // max(1, len(profiles)))]):
        served = np.lexsort(rank(profiles)[::-1]).tolist()
        at = first_fit(interference, served, nowhere)
        ways.append((int((at + profiles.size).max(initial=0)), number, at))
        if ways[-1][0] <= bound:
            break
    found, each = list[Fitted](), moves // len(ways)
    for top, number, at in sorted(ways, key=lambda way: way[:2]):
        if not found or found[-1].top > bound:
            chance = Random(number)
            found.append(_mended(interference, Fitted(top, at), bound, each, chance))
    best, last = min(found, key=lambda way: way.top), min(moves // 6, LAST)
    return _mended(interference, best, bound, last, Random(len(RANKS)))


def _mended(
    interference: Interference, start: Fitted, bound: int, moves: int, chance: Random
) -> Fitted:
    sizes, aligns = interference.profiles.size, interference.profiles.align
    weights, heavier = np.full(len(sizes), HEAVIER), HEAVIER
    best, part = start, 2
    while best.top > bound and moves > 0:
        limit = best.top - max(1, (best.top - bound) // part if part < NEAREST else 1)
        at = best.addresses.copy()
        out = np.flatnonzero(at + sizes > limit).tolist()
        at[out] = NOWHERE
        patience, before = min(moves, PATIENCE), interference.work
        while out and patience:
            heavy = weights[out]
            n = out.pop(int(np.where(heavy == heavy.max(), sizes[out], -1).argmax()))
            most, align = limit - int(sizes[n]), int(aligns[n])
            at[n], met = _least(most, align, interference[n], at, weights, chance)
            at[met] = NOWHERE
            weights[met] += heavier
            heavier = min(heavier + heavier // HEAVIER, HEAVIEST)
            out += met
            patience -= 1
        moves -= max(1, interference.work - before)
        if out:
            part = min(2 * part, NEAREST)
        else:
            best = Fitted(int((at + sizes).max()), at)
            part = max(2, part // 2)
    return best


def _least(
    most: int, align: int, conflicts: Conflicts, at: IntArray, weights: IntArray, chance: Random
) -> tuple[int, list[int]]:
    """Return the multiple of ``align`` up to ``most`` at which a profile of these ``conflicts``
    meets the least weight, one of several, and what it meets."""
    others, (lows, highs) = conflicts.others, conflicts.beside(at)
    ups, downs, highest = lows // align, -(-highs // align), most // align
    ends, steps = np.append(downs, ups), np.append(downs, ups + 1)
    order = steps.argsort(kind="stable")  # from each on there is less, or more, in its way
    steps, inside, rank = steps[order], (ends > 0) & (ends < highest), np.empty_like(order)
    total = np.append(0, np.cumsum(np.append(-weights[others], weights[others])[order]))
    rank[order] = steps.searchsorted(ends[order], "right")  # fast where these are in order, too
    places = np.append(ends[inside], [0, highest])
    weight = total[np.append(rank[inside], steps.searchsorted([0, highest], "right"))]
    least = chance.choice(np.flatnonzero(weight == weight.min()).tolist())
    place = int(places[least]) * align
    return place, np.unique(others[(lows < place) & (place < highs)]).tolist()
