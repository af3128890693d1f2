"""Addresses for profiles, some of which may overlap: the smallest arena that is found (dynamic
storage allocation).

First fits, mended move by move. Where each profile is one block and none may overlap another, an
exact search goes on where they miss the bound.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import Interference, Overlaps, Profiles, load
from pipeline.placement.fit import RANKS, Fitted, fitted
from pipeline.placement.skyline import fill

EFFORT = 300_000

MOVES = 40_000
"""Bound the moves of profiles whose conflicts are known; there are fewer of others."""

EACH = 100
"""Bound them for each profile, too."""

LOOKUP = 16
"""Steps of a lookup of conflicts."""

MOVE = 50
"""Steps of about a microsecond that a move, or a fit, takes."""


@dataclass(frozen=True)
class Placed:
    """The size of the arena, the address of each profile, and the most that is held at once.

    Attributes:
        proved: no arena is smaller.
        effort: steps of about a microsecond that the search took.
    """

    cells: int
    addresses: IntArray
    bound: int
    proved: bool = False
    effort: int = 0


def place(of: Profiles, overlaps: Overlaps = (), effort: int = EFFORT) -> Placed:
    """Find addresses in an arena as small as can be.

    Args:
        effort: of the exact search, steps of about a microsecond; where it cannot be, of moves in
            proportion.
    """
    bound, conflicts = load(of, overlaps), Interference(of, overlaps)
    if len(overlaps) or conflicts.several.any():
        moves = min(MOVES, EACH * len(of))
        found = fitted(conflicts, bound, moves * effort // EFFORT)
        return Placed(*found, bound, effort=LOOKUP * conflicts.work)
    return _exact(conflicts, bound, effort)


def _exact(conflicts: Interference, bound: int, effort: int) -> Placed:
    """First fits and a quick look at the bound, then many moves and all that is left."""
    profiles, spent, moves, best = conflicts.profiles, 0, 0, None
    node = 5 * len(profiles)
    for share in (effort // 10, effort):
        found = fitted(conflicts, bound, moves)
        spent += MOVE * (len(RANKS) * len(profiles) + moves)
        best = found if best is None or found.top < best.top else best
        limit, certain = bound, True
        while best.top > bound:
            filled, nodes, certain = fill(profiles, limit, max(1, (share - spent) // node))
            spent += node * nodes
            if filled is not None:
                best = Fitted(int((filled + profiles.size).max()), np.array(filled))
            elif not certain or limit == best.top - 1:
                break
            limit = best.top - 1
        if best.top == bound or certain:
            return Placed(*best, bound, True, spent)
        moves = effort // 3 // MOVE
    assert best is not None
    return Placed(*best, bound, False, spent)
