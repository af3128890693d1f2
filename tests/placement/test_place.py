"""Nothing meets that may not, no arena is below the bound, tiny ones are hardly above the
smallest."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import Block, Profile, Profiles, load
from pipeline.placement.place import place
from pipeline.placement.skyline import fill

Rng = np.random.Generator
Overlap = tuple[int, int, int, int]


def random_profile(rng: Rng, steps: int) -> Profile:
    """One block, one that changes its size, or rows side by side that die one by one."""
    first = int(rng.integers(steps))
    last = int(rng.integers(first, steps))
    size = int(rng.integers(1, 7))
    kind = rng.integers(3)
    if kind == 0 or first == last:
        return Profile((Block(size, first, last),), int(rng.choice([1, 1, 2])))
    turn = int(rng.integers(first, last))
    if kind == 1:
        parts = Block(size, first, turn), Block(int(rng.integers(1, 7)), turn + 1, last)
        return Profile(parts)
    ends = sorted(int(n) for n in rng.integers(first, last + 1, 3))
    rows = tuple(Block(size, first, end) for end in ends)
    return Profile(rows, offsets=tuple(size * n for n in range(3)))


def random_overlaps(rng: Rng, profiles: list[Profile]) -> list[Overlap]:
    """Draw overlaps of pairs where one part begins as another ends."""
    every = enumerate((n, part) for n, profile in enumerate(profiles) for part in profile.parts)
    return [
        (over, under, int(rng.integers(-4, 4)), below.size)
        for (over, (one, above)), (under, (other, below)) in product(every, repeat=2)
        if one != other and above.first == below.last and rng.random() < 0.6
        if above.first < above.last or below.first < below.last  # not both ways
    ]


def met(
    profiles: list[Profile], overlaps: list[Overlap], addresses: Sequence[int] | IntArray
) -> list[int]:
    """Parts that share a cell at a time and may not, counted cell by cell."""
    allowed = {each[:2]: each for each in overlaps}
    wrong = []
    every = enumerate(
        (n, addresses[n] + offset, part)
        for n, profile in enumerate(profiles)
        for offset, part in profile.placed
    )
    for (one, (n, a, x)), (other, (m, b, y)) in product(every, repeat=2):
        if n >= m or x.first > y.last or y.first > x.last:
            continue
        if (one, other) in allowed:
            low, high = allowed[one, other][2:]
            bad = low < a - b < high
        elif (other, one) in allowed:
            low, high = allowed[other, one][2:]
            bad = low < b - a < high
        else:
            bad = set(range(a, a + x.size)) & set(range(b, b + y.size))
        wrong += [one] * bool(bad)
    return wrong


@pytest.mark.parametrize("seed", range(150))
def test_nothing_meets_that_may_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    profiles = [random_profile(rng, 6) for _ in range(rng.integers(1, 9))]
    overlaps = random_overlaps(rng, profiles) if seed % 2 else []
    found = place(Profiles(profiles), overlaps)
    assert not met(profiles, overlaps, found.addresses)
    assert not any(a % p.align for a, p in zip(found.addresses, profiles, strict=True))
    tops = [a + p.size for a, p in zip(found.addresses, profiles, strict=True)]
    assert found.cells == max(tops)
    if not overlaps:  # of overlaps only the best of each counts: a bound, but not of chains of them
        assert found.cells >= found.bound == load(Profiles(profiles))


def test_three_profiles_take_the_least_there_is() -> None:
    """But for a few: blocks are served one after the other, each as low as it goes."""
    missed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        profiles = [random_profile(rng, 3) for _ in range(3)]
        overlaps = random_overlaps(rng, profiles)
        found = place(Profiles(profiles), overlaps)
        ways = product(range(found.cells), repeat=3)
        missed += any(smaller(profiles, overlaps, way, found.cells) for way in ways)
    assert missed <= 2


@pytest.mark.parametrize(("effort", "most"), [(3_000, 1.055), (300_000, 1.03)])
def test_eight_profiles_take_little_more_than_the_bound(effort: int, most: float) -> None:
    cells = bound = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        profiles = [random_profile(rng, 6) for _ in range(8)]
        found = place(
            Profiles(profiles), random_overlaps(rng, profiles) if seed % 2 else [], effort
        )
        cells, bound = cells + found.cells, bound + found.bound
    assert cells <= most * bound


def smaller(
    profiles: list[Profile], overlaps: list[Overlap], addresses: tuple[int, ...], cells: int
) -> bool:
    ends = (a + p.size for a, p in zip(addresses, profiles, strict=True))
    aligned = not any(a % p.align for a, p in zip(addresses, profiles, strict=True))
    return aligned and max(ends) < cells and not met(profiles, overlaps, addresses)


def blocks(seed: int, count: int, steps: int, largest: int) -> list[Profile]:
    """Draw profiles of one part each, a third of which begin at even cells."""
    rng = np.random.default_rng(seed)
    first = rng.integers(steps, size=count)
    last = np.minimum(steps - 1, first + rng.integers(0, 4, count))
    size, align = rng.integers(1, largest + 1, count), rng.choice([1, 1, 2], count)
    return [
        Profile((Block(int(n), int(a), int(b)),), int(each))
        for n, a, b, each in zip(size, first, last, align, strict=True)
    ]


def test_whether_blocks_fit_is_answered_exactly_and_soon() -> None:
    for seed in range(60):
        profiles = blocks(seed, 4, 5, 4)
        every = Profiles(profiles)
        cells = place(every).cells
        found, _, certain = fill(every, cells, 1000)
        assert found is not None and certain and not met(profiles, [], found)
        assert max(a + p.size for a, p in zip(found, profiles, strict=True)) == cells
        assert place(every).proved and fill(every, cells - 1, 1000)[::2] == (None, True)
        ways = product(*(range(0, cells - p.size, p.align) for p in profiles))
        assert all(met(profiles, [], way) for way in ways)
    many = [Profiles(blocks(seed, 12, 8, 8)) for seed in range(40)]
    assert sum(fill(each, place(each).cells, 1000)[1] for each in many) < 1500
    assert place(Profiles([])).cells == 0


def test_no_more_effort_is_made_than_is_asked_for() -> None:
    many = [blocks(seed, 40, 12, 89) for seed in range(9)]
    assert all(place(Profiles(each), effort=100_000).effort <= 100_000 for each in many)


def test_an_output_over_a_dying_input() -> None:
    """As large as the input, forwards: at its place; half as wide pixels: a little above, too."""
    both = Profiles([Profile((Block(8, 0, 1),)), Profile((Block(8, 1, 2),))])
    assert place(both, [(1, 0, 0, 8)]).cells == 8
    assert place(both).cells == 16
    assert load(both, [(1, 0, -3, 8)]) == 11
    assert place(both, [(1, 0, -3, 8)]).cells == 11


def test_the_area_is_cells_times_steps() -> None:
    several = Profile((Block(1, 0, 0), Block(4, 1, 2)))
    assert Profiles([Profile((Block(2, 3, 5),)), several]).area.tolist() == [6, 9]


def test_rows_in_one_piece_die_one_by_one() -> None:
    """Place what is made after the second row died over it."""
    rows = Profile(tuple(Block(4, 0, n) for n in range(3)), offsets=(0, 4, 8))
    made = [Profile((Block(4, 1, 3),)), Profile((Block(4, 2, 3),))]
    assert place(Profiles([rows, *made])).cells == 12


def test_what_may_be_shared_lies_as_near_as_is_allowed() -> None:
    """An output of 3 cells may begin up to 2 after an input of 4: wholly in its place."""
    both = Profiles([Profile((Block(4, 0, 1),)), Profile((Block(3, 1, 2),))])
    for safe, shared in ((0, 3), (1, 3), (2, 3), (-2, 1), (-3, 0)):
        overlap = (1, 0, safe, 4)
        assert place(both, [overlap]).cells == load(both, [overlap]) == 7 - shared
