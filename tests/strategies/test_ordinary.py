"""Ordinary execution of any graph against brute force; and on abstract tasks the order with the
least peak, and addresses: proofs, bounds and budgets. Published peaks are in tests/models."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, count, product
from typing import NamedTuple

import numpy as np
import pytest
from ortools.sat.python import cp_model

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add, Multiply
from pipeline.graph.operators.placing import Reshape
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.placement.blocks import Block, Profile, Profiles, load
from pipeline.placement.place import place
from pipeline.placement.skyline import fill
from pipeline.plan.cost import Cost, cost
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.search.order import least_peak
from pipeline.search.view.whole import Task, View
from pipeline.strategies.ordinary import Ordinary
from tests.strategies.chains import board
from tests.strategies.nets import Net, grown
from tests.strategies.proving import exact
from tests.tiers import quick

# --- by brute force, which shares nothing with the strategies; in bytes, all tensors int8

Life = tuple[int, int, int]
"""Bytes, the first and the last step."""


def needed(graph: Graph) -> list[Operator]:
    reached, before = {graph.output}, set[str]()
    while reached != before:
        before = set(reached)
        reached |= {name for op in graph.operators if op.output in before for name in op.inputs}
    return [op for op in graph.operators if op.output in reached]


def orders(graph: Graph) -> Iterator[list[Operator]]:
    def extend(done: list[Operator], rest: list[Operator]) -> Iterator[list[Operator]]:
        if not rest:
            yield done
        there = {graph.input, *(op.output for op in done)}
        for op in rest:
            if set(op.inputs) <= there:
                yield from extend([*done, op], [other for other in rest if other is not op])

    return extend([], needed(graph))


def places(graph: Graph, order: list[Operator], step: int) -> list[str | None]:
    """None, and each input that the operator at ``step`` may overwrite."""
    op = order[step]
    size, shape = graph.tensors[op.output].size, graph.tensors[op.output].shape
    later = {name for other in order[step + 1 :] for name in other.inputs} | {graph.output}
    dying = [name for name in sorted(set(op.inputs)) if name not in later]
    if isinstance(op, Reshape):
        return [None, *(name for name in dying if graph.tensors[name].size == size)]
    if isinstance(op, (Add, Multiply, Lookup)):
        return [None, *(name for name in dying if graph.tensors[name].shape == shape)]
    return [None]


def lives(
    graph: Graph, order: list[Operator], taken: tuple[str | None, ...], keep_input: bool
) -> list[Life]:
    """Tensors that share a place are one; step 0 is before the first operator."""
    home = {graph.input: graph.input}
    first, last = {graph.input: 0}, {graph.input: 0}
    for step, (op, over) in enumerate(zip(order, taken, strict=True), 1):
        for name in op.inputs:
            last[home[name]] = step
        place = op.output if over is None else home[over]
        home[op.output] = place
        first.setdefault(place, step)
        last[place] = step
    last[home[graph.output]] = len(order)
    if keep_input:
        last[graph.input] = len(order)
    return [(graph.tensors[place].size, first[place], last[place]) for place in first]


def peak(blocks: list[Life]) -> int:
    steps = range(max(last for _, _, last in blocks) + 1)
    return max(sum(size for size, a, b in blocks if a <= step <= b) for step in steps)


def fits(blocks: list[Life], limit: int) -> bool:
    """Check by OR-tools whether there are addresses within ``limit`` bytes."""
    model = cp_model.CpModel()
    lives, places = list[cp_model.IntervalVar](), list[cp_model.IntervalVar]()
    for size, first, last in blocks:
        address = model.new_int_var(0, max(0, limit), "")
        model.add(address + size <= limit)
        places.append(model.new_fixed_size_interval_var(address, size, ""))
        lives.append(model.new_fixed_size_interval_var(first, last + 1 - first, ""))
    model.add_no_overlap_2d(lives, places)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model) == cp_model.OPTIMAL


def optimum(graph: Graph, keep_input: bool = False) -> tuple[int, int]:
    """The least peak, and the smallest arena that any plan with that peak has.

    With ``keep_input`` among the plans whose input is there, untouched, at the end.
    """
    variants = {
        tuple(sorted(lives(graph, order, taken, keep_input)))
        for order in orders(graph)
        for taken in product(*(places(graph, order, n) for n in range(len(order))))
        if not (keep_input and graph.input in taken)
    }
    peaks = {variant: peak(list(variant)) for variant in variants}
    least = min(peaks.values())
    best = [list(variant) for variant, most in peaks.items() if most == least]
    arena = next(limit for limit in count(least) if any(fits(blocks, limit) for blocks in best))
    return least, arena


# --- as planned

ORDINARY = Ordinary()
BOARD = replace(board(streams=False, weights_in="flash", sram_bytes=1 << 24), flash_bytes=1 << 28)


class Planned(NamedTuple):
    plan: Plan
    cost: Cost


def proved(graph: Graph, hardware: Hardware = BOARD, strategy: Ordinary = ORDINARY) -> Planned:
    """The plan and its cost, after it has been verified and run on a random frame."""
    plan = strategy.plan(graph, hardware)
    report = exact(plan, graph).report
    kept = {"input_kept": True} if strategy.preserve_input else {}
    assert dict(plan.notes) == {"order_proved": True, "arena_proved": True, **kept}
    return Planned(plan, cost(plan, graph, hardware, report))


KINDS = (*["conv"] * 2, "depthwise", "add", "multiply", "lookup", "gate", "concat", "reshape")


def random_graph(seed: int) -> Graph:
    """Draw up to ten operators over tensors of one to six bytes; loose ends are mostly joined."""
    rng = np.random.default_rng(seed)
    net = Net((1, 1, int(rng.integers(1, 7))), seed)
    ends = grown(net, rng, KINDS, range(1, 7), wanted=int(rng.integers(2, 8)))
    if rng.random() < 0.2:
        return net.graph()
    return net.graph(net.concat(*ends) if len(ends) > 1 else ends[0])


@pytest.mark.parametrize("first", quick(1, range(0, 1200, 30), ci=2))
def test_equals_brute_force(first: int) -> None:
    for seed in range(first, first + 30):
        graph = random_graph(seed)
        _, found = proved(graph)
        least, arena = optimum(graph)
        assert (found.pmu_bytes, found.arena_bytes) == (least, arena), seed
        assert found.over_bound_bytes == arena - least
        streamed = ORDINARY.plan(graph, replace(BOARD, streams_input=True))
        assert cost(streamed, graph, BOARD, verify(streamed, graph)).arena_bytes == arena


@pytest.mark.ci
def test_an_input_that_is_kept_costs_no_more_than_it_must() -> None:
    more = 0
    for seed in range(15):
        graph = random_graph(seed)
        plan, found = proved(graph, strategy=Ordinary(preserve_input=True))
        least, arena = optimum(graph, keep_input=True)
        assert (found.pmu_bytes, found.arena_bytes) == (least, arena), seed
        assert found.over_bound_bytes == arena - least
        low, high = plan.buffer[graph.input].extent
        written = [plan.buffer[step.out.buffer].extent for step in plan.tracks[0].steps]
        assert all(stop <= low or high <= start for start, stop in written), seed
        more += least > optimum(graph)[0]
    assert more, "it never mattered"


def test_an_input_that_streams_in_cannot_be_kept() -> None:
    with pytest.raises(ThimbleError, match=r"preserve_input.*hardware\.streams_input=false"):
        Ordinary(preserve_input=True).plan(random_graph(0), replace(BOARD, streams_input=True))


def test_only_what_is_as_large_is_overwritten() -> None:
    """(1, 1, c) times (h, w, c) has the shape of the second."""
    net = Net((1, 1, 6))
    image = net.reshape(net.dense("input", 24), 2, 2, 6)
    total = net.multiply("input", image)
    plan, found = proved(net.graph())
    assert plan.buffer[total].map.base == plan.buffer[image].map.base
    assert found.pmu_bytes == 6 + 24


def test_operators_that_nothing_needs_are_left_out() -> None:
    net = Net((2, 2, 4))
    result = net.conv("input", 4)
    net.conv("input", 50)
    plan, found = proved(net.graph(result))
    assert found.pmu_bytes == 32 and len(plan.tracks[0].steps) == 1
    with pytest.raises(ThimbleError, match="nothing to compute, its output is given"):
        Ordinary().plan(net.graph("input"), BOARD)


def test_alignment_moves_addresses_not_the_peak() -> None:
    net = Net((1, 1, 5))
    x = net.conv("input", 7)
    graph = net.graph(net.add(net.conv(x, 7), x))
    plan, found = proved(graph, replace(BOARD, alignment_bytes=4))
    assert all(b.map.base % 8 == 0 for b in plan.buffers if b.role == "activation")  # type: ignore[union-attr]
    assert (found.pmu_bytes, found.arena_bytes) == (14, 15)


def random_view(seed: int, tasks: int, near: int = 4) -> View:
    """Tasks that read one to three of the ``near`` latest tensors; the last reads what is left."""
    rng = np.random.default_rng(seed)
    made, sizes = list[Task](), [int(rng.integers(1, 10))]
    for _ in range(tasks):
        pool = np.arange(max(0, len(sizes) - near), len(sizes))
        number = min(len(pool), int(rng.integers(1, 4)))
        reads = tuple(int(n) for n in rng.choice(pool, number, replace=False))
        over = reads[:1] if rng.random() < 0.3 else ()
        made.append(Task(reads, over))
        sizes.append(sizes[reads[0]] if over else int(rng.integers(1, 10)))
    loose = set(range(len(sizes))) - {t for task in made for t in task.reads}
    made.append(Task(tuple(sorted(loose))))
    return View((*sizes, 1), tuple(made), (len(sizes),))


def test_the_given_order_is_kept_if_it_is_as_good() -> None:
    chain = tuple(Task((n,)) for n in range(5))
    assert least_peak(View((1, 2, 3, 4, 5, 6), chain, (5,))).tasks == (0, 1, 2, 3, 4)


def test_a_search_that_gives_up_says_so_and_its_bound_holds() -> None:
    gave_up = 0
    for seed in range(8):
        view = random_view(seed, 12, near=8)
        exact, hasty = least_peak(view), least_peak(view, effort=3)
        assert hasty.bound <= exact.peak <= hasty.peak == view.peak(hasty.tasks)
        assert exact.proved and hasty.proved == (hasty.bound == hasty.peak)
        gave_up += not hasty.proved
    assert gave_up


def test_wide_graphs_are_planned_in_time() -> None:
    """Eight branches of eight: 9**8 sets of done tasks."""
    tasks, sizes = list[Task](), [4]
    for branch in range(8):
        last = 0
        for depth in range(8):
            tasks.append(Task((last,)))
            last = len(sizes)
            sizes.append(9 if depth < 7 else 1 + branch)
    ends = tuple(8 * branch + 8 for branch in range(8))
    view = View((*sizes, 1), (*tasks, Task(ends)), (len(sizes),))
    found = least_peak(view)
    assert found.proved
    # the largest end last; while it is made the input is gone
    assert found.peak == max(4 + 9 + 9 + sum(range(1, 7)), 18 + sum(range(1, 8)))


def block(size: int, first: int, last: int, align: int = 1) -> Profile:
    return Profile((Block(size, first, last),), align)


def random_blocks(seed: int, number: int) -> list[Profile]:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, number, number)
    last = first + rng.integers(0, 4, number)
    sizes = rng.integers(1, 7, number)
    return [block(*map(int, each)) for each in zip(sizes, first, last, strict=True)]


def apart(blocks: list[Profile], addresses: Sequence[int] | IntArray) -> bool:
    every = [(at, *each.parts[0]) for at, each in zip(addresses, blocks, strict=True)]
    return all(
        a > d or c > b or x + size <= y or y + other <= x
        for (x, size, a, b), (y, other, c, d) in combinations(every, 2)
    )


@pytest.mark.parametrize("seed", range(60))
def test_packings_are_as_small_as_exhaustive_search_finds(seed: int) -> None:
    """By the skyline search also below the bound and where the bound cannot be met."""
    blocks = random_blocks(seed, 3 + seed % 7)
    lives = [b.parts[0] for b in blocks]
    every = Profiles(blocks)
    found = place(every, effort=1_000_000)
    assert apart(blocks, found.addresses) and found.proved
    assert found.cells == max(a + b.size for a, b in zip(found.addresses, blocks, strict=True))
    assert fits(lives, found.cells)
    assert found.cells == load(every) or not fits(lives, found.cells - 1)
    for limit in range(load(every) - 1, load(every) + 2):
        addresses, _, certain = fill(every, limit, 100_000)
        assert certain and (addresses is not None) == fits(lives, limit)
        assert addresses is None or apart(blocks, addresses)


def test_alignment_is_kept_and_can_cost_more_than_the_bound() -> None:
    """Three sizes are odd or aligned to 2: 12 cells live at once do not fit into 12."""
    blocks = [block(2, 0, 0), block(1, 0, 1, 2), block(5, 1, 2, 2), block(6, 0, 1, 2)]
    every = Profiles(blocks)
    found = place(every, effort=1_000_000)
    assert apart(blocks, found.addresses)
    assert all(a % b.align == 0 for a, b in zip(found.addresses, blocks, strict=True))
    assert (found.cells, found.proved) == (13, True)
    assert load(every) == 12 and fill(every, 12, 1000)[::2] == (None, True)
