"""Addresses for profiles, some of which may overlap: the smallest arena that is found (dynamic
storage allocation).

First fits, mended move by move. Where each profile is one block and none may overlap another, an
exact search goes on where they miss the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.placement.blocks import Interference, Overlap, Profile, load
from pipeline.placement.fit import RANKS, Fitted, fitted
from pipeline.placement.skyline import fill

EFFORT = 300_000

MOVES = 40_000
"""Bound the moves of profiles whose conflicts are known; there are fewer of others."""

EACH = 100
"""Bound them for each profile, too."""

MOVE = 50
"""Steps of about a microsecond that a move, or a fit, takes."""


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
) -> Placed:
    """Find addresses in an arena as small as can be.

    Args:
        effort: of the exact search, steps of about a microsecond; where it cannot be, of moves in
            proportion.
    """
    bound, conflicts = load(profiles, overlaps), Interference(profiles, overlaps)
    proved, spent = False, 0
    if not overlaps and all(len(profile.parts) == 1 for profile in profiles):
        best, proved, spent = _exact(profiles, conflicts, bound, effort)
    else:
        moves = min(MOVES, EACH * len(profiles))
        best = fitted(profiles, conflicts, bound, moves * effort // EFFORT)
    addresses = tuple(best.addresses[n] for n in range(len(profiles)))
    return Placed(addresses, best.top, bound, proved, spent)


def _exact(
    profiles: Sequence[Profile], conflicts: Interference, bound: int, effort: int
) -> tuple[Fitted, bool, int]:
    """The best, whether that is proved, and the effort: first fits and a quick look at the bound,
    then many moves and all that is left."""
    node, spent, moves, best = 5 * len(profiles), 0, 0, None
    for share in (effort // 10, effort):
        found = fitted(profiles, conflicts, bound, moves)
        spent += MOVE * (len(RANKS) * len(profiles) + moves)
        best = found if best is None or found.top < best.top else best
        limit, certain = bound, True
        while best.top > bound:
            filled, nodes, certain = fill(profiles, limit, max(1, (share - spent) // node))
            spent += node * nodes
            if filled is not None:
                tops = (at + profile.size for at, profile in zip(filled, profiles, strict=True))
                best = Fitted(max(tops), dict(enumerate(filled)))
            elif not certain or limit == best.top - 1:
                break
            limit = best.top - 1
        if best.top == bound or certain:
            return best, True, spent
        moves = effort // 3 // MOVE
    assert best is not None
    return best, False, spent
