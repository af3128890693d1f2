"""Free nibbles: elements go into as few runs as there can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.search.chains.free_cells import Cells, Full

ARENAS = st.lists(st.booleans(), max_size=40)


def runs(free: list[bool], width: int) -> list[tuple[int, int]]:
    """(places for elements, the first one) of each run, the shortest first."""
    usable = [all(free[n : n + width]) for n in range(0, len(free) - width + 1, width)]
    found, begin = [], None
    for n, each in enumerate([*usable, False]):
        if each and begin is None:
            begin = n
        elif not each and begin is not None:
            found.append((n - begin, begin))
            begin = None
    return sorted(found)


def best(free: list[bool], count: int, width: int) -> list[int] | None:
    """The shortest run that holds what is left, or else the longest whole; None if too few."""
    left, chosen = runs(free, width), list[int]()
    while len(chosen) < count and left:
        wanted = count - len(chosen)
        length, first = left.pop(next((n for n, r in enumerate(left) if r[0] >= wanted), -1))
        chosen += range(first, first + min(length, wanted))
    return sorted(n * width for n in chosen) if len(chosen) == count else None


@given(ARENAS, st.integers(1, 9), st.sampled_from([1, 2, 3, 4, 8]))
def test_pieces_are_as_few_as_can_be(free: list[bool], count: int, width: int) -> None:
    arena = Cells(len(free))
    arena.free[:] = free
    expected = best(free, count, width)
    if expected is None:
        with pytest.raises(Full):
            arena.pieces(count, width)
        return
    assert arena.pieces(count, width).tolist() == expected
    taken = np.zeros(len(free), bool)
    for nibble in range(width):
        taken[np.array(expected) + nibble] = True
    assert (arena.free == (np.array(free, bool) & ~taken)).all()
