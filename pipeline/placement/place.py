"""Addresses for profiles, some of which may overlap: the smallest arena that is found (dynamic
storage allocation).

First fits, again and again. Where each profile is one block and none may overlap another, an exact
search goes on where they miss the bound; where parts of a program are told, part after part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.placement.blocks import Interference, Overlap, Profile, load
from pipeline.placement.chain import chained
from pipeline.placement.fit import RANKS, Fitted, squeaky
from pipeline.placement.skyline import fill

ROUNDS = 80
EFFORT = 300_000


@dataclass(frozen=True)
class Placed:
    """The address of each profile, the size of the arena, and the most that is held at once.

    Attributes:
        proved: no arena is smaller.
        effort: steps of about a microsecond that the exact search took.
    """

    addresses: tuple[int, ...]
    cells: int
    bound: int
    proved: bool = False
    effort: int = 0


def place(
    profiles: Sequence[Profile],
    overlaps: Sequence[Overlap] = (),
    effort: int = EFFORT,
    turns: Sequence[int] | None = None,
) -> Placed:
    """Find addresses in an arena as small as can be.

    Args:
        effort: of the exact search, steps of about a microsecond; of parts one after the other,
            half the lookups of conflicts.
        turns: the last steps of parts that few profiles outlive; where they are given, part is
            placed after part.
    """
    bound, conflicts = load(profiles, overlaps), Interference(profiles, overlaps)
    proved, spent = False, 0
    if not overlaps and all(len(profile.parts) == 1 for profile in profiles):
        best, proved, spent = _exact(profiles, conflicts, bound, effort)
    elif turns is None:
        best = squeaky(profiles, conflicts, range(len(profiles)), {}, bound, ROUNDS)
    else:
        best = chained(profiles, conflicts, turns, bound, effort)
    addresses = tuple(best.addresses[n] for n in range(len(profiles)))
    return Placed(addresses, best.top, bound, proved, spent)


def _exact(
    profiles: Sequence[Profile], conflicts: Interference, bound: int, effort: int
) -> tuple[Fitted, bool, int]:
    """The best, whether that is proved, and the effort: quick first fits and a quick look at the
    bound, then many first fits and all that is left."""
    everything = range(len(profiles))
    node, each = 5 * len(profiles), 1 + len(profiles) ** 2 // 8
    spent, rounds, best = 0, 1, None
    for share in (effort // 10, effort):
        fitted = squeaky(profiles, conflicts, everything, {}, bound, rounds)
        spent += each * len(RANKS) * rounds
        best = fitted if best is None or fitted.top < best.top else best
        limit, certain = bound, True
        while best.top > bound:
            found, nodes, certain = fill(profiles, limit, max(1, (share - spent) // node))
            spent += node * nodes
            if found is not None:
                tops = (at + profile.size for at, profile in zip(found, profiles, strict=True))
                best = Fitted(max(tops), dict(enumerate(found)))
            elif not certain or limit == best.top - 1:
                break
            limit = best.top - 1
        if best.top == bound or certain:
            return best, True, spent
        rounds = max(1, effort // 3 // (each * len(RANKS)))
    assert best is not None
    return best, False, spent
