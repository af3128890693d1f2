"""The order with the least peak, and addresses, on abstract tasks: proofs, bounds and budgets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pipeline.placement.blocks import Block, load
from pipeline.placement.pack import first_fit, pack
from pipeline.placement.skyline import fill
from pipeline.search.order import beam, floor, least_peak
from pipeline.search.whole import place
from pipeline.search.work import Task, Work
from tests.strategies.brute import fits


def random_work(seed: int, tasks: int, near: int = 4) -> Work:
    """Tasks that read one to three of the ``near`` latest tensors; the last reads what is left."""
    rng = np.random.default_rng(seed)
    made, sizes = list[Task](), [int(rng.integers(1, 10))]
    for _ in range(tasks):
        pool = np.arange(max(0, len(sizes) - near), len(sizes))
        number = min(len(pool), int(rng.integers(1, 4)))
        reads = tuple(int(n) for n in rng.choice(pool, number, replace=False))
        over = reads[:1] if rng.random() < 0.3 else ()
        made.append(Task(reads, len(sizes), over))
        sizes.append(sizes[reads[0]] if over else int(rng.integers(1, 10)))
    loose = set(range(len(sizes))) - {t for task in made for t in task.reads}
    made.append(Task(tuple(sorted(loose)), len(sizes)))
    return Work((*sizes, 1), tuple(made), 0, len(sizes))


def best_peak(work: Work, done: tuple[int, ...] = ()) -> int:
    """By trying all orders, counting what is held from scratch."""
    if len(done) == len(work.tasks):
        return peak(work, done)
    there = {work.start, *(work.tasks[n].makes for n in done)}
    return min(
        best_peak(work, (*done, n))
        for n, task in enumerate(work.tasks)
        if n not in done and set(task.reads) <= there
    )


def peak(work: Work, order: tuple[int, ...]) -> int:
    most = work.sizes[work.start]
    for step, number in enumerate(order):
        task, later = work.tasks[number], [work.tasks[n] for n in order[step + 1 :]]
        there = {work.start, *(work.tasks[n].makes for n in order[:step])}
        wanted = {t for other in later for t in other.reads} | {work.result}
        live = {t for t in there if t in wanted or t in task.reads}
        in_place = any(t not in wanted for t in task.over)
        size = 0 if in_place else work.sizes[task.makes]
        most = max(most, sum(work.sizes[t] for t in live) + size)
    return most


@pytest.mark.parametrize("seed", range(60))
def test_no_order_is_better(seed: int) -> None:
    work = random_work(seed, 3 + seed % 4)
    found = least_peak(work)
    assert found.proved and found.peak == best_peak(work)
    assert sorted(found.tasks) == list(range(len(work.tasks)))
    assert work.peak(found.tasks) == peak(work, found.tasks) == found.peak
    assert floor(work) <= found.peak <= work.peak(beam(work, 1))


def test_the_given_order_is_kept_if_it_is_as_good() -> None:
    chain = tuple(Task((n,), n + 1) for n in range(5))
    assert least_peak(Work((1, 2, 3, 4, 5, 6), chain, 0, 5)).tasks == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("seed", range(8))
def test_a_search_that_gives_up_says_so_and_its_bound_holds(seed: int) -> None:
    work = random_work(seed, 12, near=8)
    exact, hasty = least_peak(work), least_peak(work, effort=3)
    assert hasty.bound <= exact.peak <= hasty.peak == work.peak(hasty.tasks)
    assert exact.proved and hasty.proved == (hasty.bound == hasty.peak)


def test_some_search_gives_up() -> None:
    assert any(not least_peak(random_work(seed, 12, 8), effort=3).proved for seed in range(8))


def test_wide_graphs_are_planned_in_time() -> None:
    """Eight branches of eight: 9**8 sets of done tasks."""
    tasks, sizes = list[Task](), [4]
    for branch in range(8):
        last = 0
        for depth in range(8):
            tasks.append(Task((last,), len(sizes)))
            last = len(sizes)
            sizes.append(9 if depth < 7 else 1 + branch)
    ends = tuple(8 * branch + 8 for branch in range(8))
    work = Work((*sizes, 1), (*tasks, Task(ends, len(sizes))), 0, len(sizes))
    found = least_peak(work)
    assert found.proved
    # the largest end last; while it is made the input is gone
    assert found.peak == max(4 + 9 + 9 + sum(range(1, 7)), 18 + sum(range(1, 8)))


def random_blocks(seed: int, number: int) -> list[Block]:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, number, number)
    last = first + rng.integers(0, 4, number)
    sizes = rng.integers(1, 7, number)
    return [Block(*map(int, each)) for each in zip(sizes, first, last, strict=True)]


def apart(blocks: list[Block], addresses: tuple[int, ...]) -> bool:
    return all(
        not a.meets(b) or x + a.size <= y or y + b.size <= x
        for (a, x), (b, y) in combinations(list(zip(blocks, addresses, strict=True)), 2)
    )


@pytest.mark.parametrize("seed", range(60))
def test_packings_are_as_small_as_exhaustive_search_finds(seed: int) -> None:
    blocks = random_blocks(seed, 4 + seed % 6)
    found = pack(blocks, 1_000_000)
    assert apart(blocks, found.addresses) and found.proved
    assert found.cells == max(a + b.size for a, b in zip(found.addresses, blocks, strict=True))
    lives = [(b.size, b.first, b.last) for b in blocks]
    assert fits(lives, found.cells)
    assert found.cells == load(blocks) or not fits(lives, found.cells - 1)


@pytest.mark.parametrize("seed", range(60))
def test_the_skyline_search_agrees_with_exhaustive_search(seed: int) -> None:
    """Also below the bound and where the bound cannot be met."""
    blocks = random_blocks(seed, 3 + seed % 6)
    lives = [(b.size, b.first, b.last) for b in blocks]
    for limit in range(load(blocks) - 1, load(blocks) + 2):
        addresses, _, certain = fill(blocks, limit, 100_000)
        assert certain and (addresses is not None) == fits(lives, limit)
        if addresses is not None:
            assert apart(blocks, addresses)


def test_where_first_fit_misses_the_bound_the_search_does_not() -> None:
    """Large blocks first leave holes that no later one fills."""
    missed = 0
    for seed in range(200):
        blocks = random_blocks(seed, 14)
        by_size = sorted(range(len(blocks)), key=lambda n: -blocks[n].size)
        addresses = first_fit(blocks, by_size)
        assert apart(blocks, addresses)
        missed += max(a + b.size for a, b in zip(addresses, blocks, strict=True)) > load(blocks)
        assert pack(blocks, 1_000_000).cells == load(blocks)
    assert missed > 20


def test_alignment_is_kept_and_can_cost_more_than_the_bound() -> None:
    """Three sizes are odd or aligned to 2: 12 cells live at once do not fit into 12."""
    blocks = [Block(2, 0, 0), Block(1, 0, 1, 2), Block(5, 1, 2, 2), Block(6, 0, 1, 2)]
    found = pack(blocks, 1_000_000)
    assert apart(blocks, found.addresses)
    assert all(a % b.align == 0 for a, b in zip(found.addresses, blocks, strict=True))
    assert (found.cells, found.proved) == (13, True)
    assert load(blocks) == 12 and fill(blocks, 12, 1000)[::2] == (None, True)


def test_extra_blocks_share_the_arena() -> None:
    """Sums that live before the first task lie where tensors come later."""
    work = Work((4, 6), (Task((0,), 1),), 0, 1)
    found = place(work, (1, 1), [Block(5, 0, 0)])
    assert (found.cells, found.bound, found.proved) == (10, 10, True)
    assert place(work, (1, 1), [Block(8, 0, 0)]).cells == 12
