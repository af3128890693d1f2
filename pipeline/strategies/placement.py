"""When each task runs, which outputs take an input's place, and where everything lies.

The least peak first, then the smallest arena. Where the first order with every output in place
cannot be packed into its own peak, other choices of places and other orders with that peak are
tried, until one can or all have been.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from pipeline.strategies.addresses import load, pack
from pipeline.strategies.arrangement import WORD
from pipeline.strategies.order import Order, least_peak
from pipeline.strategies.skyline import Block
from pipeline.strategies.work import State, Work

EFFORT = 1_000_000
"""Of the search over orders and places: steps of about a microsecond."""

Choice = tuple[int | None, ...]
"""For each task of an order, the input whose place its output takes."""


@dataclass(frozen=True)
class Placement:
    """
    Attributes:
        order: of the tasks, and what is known about it.
        over: for each task in that order the tensor whose place its output takes, or None.
        addresses: of every tensor, then of every extra block.
        scratch: for each task in that order the address of its scratch, 0 where it has none.
        cells: the size of the arena.
        bound: the least peak of any order, extra blocks included: no arena is smaller.
        proved: no order with this peak, whatever is done in place, has a smaller arena.
    """

    order: Order
    over: Choice
    addresses: tuple[int, ...]
    cells: int
    bound: int
    proved: bool
    scratch: tuple[int, ...] = ()


def place(work: Work, aligns: Sequence[int], extra: Sequence[Block] = ()) -> Placement:
    """Order and addresses for ``work``; each tensor's address is a multiple of its ``aligns``.

    Step 0 is before the first task; ``extra`` blocks live by these steps.
    """
    order = least_peak(work)
    starts = [Block(work.sizes[work.start], 0, 0), *extra]
    peak, best, complete, effort = max(order.peak, load(starts)), None, True, EFFORT
    for tasks, over in _variants(work, order, peak):
        if effort <= 0:
            complete = False
            break
        owner, blocks = _blocks(work, aligns, tasks, over)
        own, needs = len(blocks), _scratch(work, tasks)
        blocks = [*blocks, *needs.values(), *extra]
        if load(blocks) > peak:
            continue
        packing = pack(blocks, effort // 2)
        effort -= packing.effort + 20 * len(blocks)
        complete &= packing.proved
        if best is None or packing.cells < best.cells:
            places = [packing.addresses[n] for n in owner]
            found = Order(tasks, order.peak, order.bound)
            rest = packing.addresses[len(blocks) - len(extra) :]
            bound = max(order.bound, load(starts))
            beside = dict(zip(needs, packing.addresses[own:], strict=False))
            scratch = tuple(beside.get(number, 0) for number in tasks)
            best = Placement(found, over, (*places, *rest), packing.cells, bound, False, scratch)
        if best.cells == peak:
            break
    assert best is not None
    proved = order.proved and (complete or best.cells == peak)
    return replace(best, proved=proved)


def _scratch(work: Work, tasks: tuple[int, ...]) -> dict[int, Block]:
    """The block of each task that has scratch."""
    return {
        number: Block(work.tasks[number].scratch, step, step, WORD)
        for step, number in enumerate(tasks, 1)
        if work.tasks[number].scratch
    }


def _variants(work: Work, order: Order, peak: int) -> Iterator[tuple[tuple[int, ...], Choice]]:
    """Orders whose peak is no higher with all choices of places; the order found, all in place,
    comes first."""
    yield from ((order.tasks, over) for over in _choices(work, order.tasks))
    for tasks in _orders(work, work.first, (), peak):
        if tasks != order.tasks:
            yield from ((tasks, over) for over in _choices(work, tasks))


def _orders(
    work: Work, state: State, tasks: tuple[int, ...], peak: int
) -> Iterator[tuple[int, ...]]:
    if state.done == work.everything:
        yield tasks
    for number in work.ready(state):
        during, after = work.run(state, number)
        if during <= peak:
            yield from _orders(work, after, (*tasks, number), peak)


def _choices(work: Work, tasks: tuple[int, ...]) -> Iterator[Choice]:
    done, options = 0, list[tuple[int | None, ...]]()
    for number in tasks:
        dying = work.dying(done, number)
        options.append((*(t for t in dying if t in work.tasks[number].over), None))
        done |= 1 << number
    return product(*options)


def _blocks(
    work: Work, aligns: Sequence[int], tasks: tuple[int, ...], over: Choice
) -> tuple[list[int], list[Block]]:
    """For each tensor its block, and the blocks: tensors in one place are one block."""
    first, last = {work.start: 0}, {work.start: 0}
    for step, number in enumerate(tasks, 1):
        task = work.tasks[number]
        first[task.makes] = last[task.makes] = step
        for tensor in task.reads:
            last[tensor] = step
    last[work.result] = len(tasks)
    home = {tensor: tensor for tensor in first}
    for number, taken in zip(tasks, over, strict=True):
        if taken is not None:
            home[work.tasks[number].makes] = home[taken]
    ends: dict[int, Block] = {}
    for tensor in first:
        size, at = work.sizes[tensor], home[tensor]
        block = ends.get(at, Block(size, first[tensor], 0))
        until, align = max(block.last, last[tensor]), max(block.align, aligns[tensor])
        ends[at] = Block(size, block.first, until, align)
    number_of = {at: n for n, at in enumerate(ends)}
    return [number_of[home[t]] if t in home else 0 for t in range(len(aligns))], list(ends.values())
