"""When each task runs, which outputs take an input's place, and where everything lies.

The least peak first, then the smallest arena. Where the first order with every output in place
cannot be packed into its own peak, other choices of places and other orders with that peak are
tried, until one can or all have been.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import Form, scratch_bytes
from pipeline.placement.blocks import WORD, Block, load, round_up
from pipeline.placement.pack import pack
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.lower import room
from pipeline.search.order import Order, least_peak
from pipeline.search.view.whole import State, View, members

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


@dataclass(frozen=True)
class Ordered:
    """Operators in their order, each with the input whose place its output takes or ""; what is
    known about the order, and whether no order with its peak has a smaller arena."""

    operators: tuple[tuple[Operator, str], ...]
    order: Order
    proved: bool


def in_order(
    graph: Graph,
    hardware: Hardware,
    arriving: Arriving,
    operators: Sequence[Operator],
    keep_input: bool = False,
) -> Ordered:
    """The best order of ``operators`` after the input has arrived; all of them are needed."""
    start = arriving.start.name
    view = View.of(graph.tensors, start, operators, graph.output, *[start] * keep_input)
    aligns = [
        max(2 * hardware.alignment_bytes, graph.tensors[name].dtype.bits // 4)
        for name in view.names
    ]
    sizes = tuple(map(round_up, view.sizes, aligns))
    sums = [Block(nibbles, 0, 0, WORD) for nibbles in arriving.beside.values()]
    scratch = [2 * scratch_bytes(Form.whole(op, graph), hardware) for op in operators]
    tasks = (t._replace(scratch=n) for t, n in zip(view.tasks, scratch, strict=True))
    found = place(replace(view, sizes=sizes, tasks=tuple(tasks)), aligns, sums)
    if found.cells > room(graph, hardware):
        found = place(replace(view, sizes=sizes), aligns, sums)
    chosen = tuple(
        (operators[task], "" if over is None else view.names[over])
        for task, over in zip(found.order.tasks, found.over, strict=True)
    )
    return Ordered(chosen, found.order, found.proved)


def place(view: View, aligns: Sequence[int], extra: Sequence[Block] = ()) -> Placement:
    """Order and addresses for ``view``; each tensor's address is a multiple of its ``aligns``.

    Step 0 is before the first task; ``extra`` blocks live by these steps.
    """
    order = least_peak(view)
    starts = [Block(view.sizes[0], 0, 0), *extra]
    peak, best, complete, effort = max(order.peak, load(starts)), None, True, EFFORT
    for tasks, over in _variants(view, order, peak):
        if effort <= 0:
            complete = False
            break
        owner, blocks = _blocks(view, aligns, tasks, over)
        blocks = [*blocks, *_scratch(view, tasks), *extra]
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
            best = Placement(found, over, (*places, *rest), packing.cells, bound, False)
        if best.cells == peak:
            break
    assert best is not None
    proved = order.proved and (complete or best.cells == peak)
    return replace(best, proved=proved)


def _scratch(view: View, tasks: tuple[int, ...]) -> list[Block]:
    """A block for each task that has scratch."""
    return [
        Block(view.tasks[number].scratch, step, step, WORD)
        for step, number in enumerate(tasks, 1)
        if view.tasks[number].scratch
    ]


def _variants(view: View, order: Order, peak: int) -> Iterator[tuple[tuple[int, ...], Choice]]:
    """Orders whose peak is no higher with all choices of places; the order found, all in place,
    comes first."""
    yield from ((order.tasks, over) for over in _choices(view, order.tasks))
    for tasks in _orders(view, view.first, (), peak):
        if tasks != order.tasks:
            yield from ((tasks, over) for over in _choices(view, tasks))


def _orders(
    view: View, state: State, tasks: tuple[int, ...], peak: int
) -> Iterator[tuple[int, ...]]:
    if not state.open:
        yield tasks
    for number in members(state.open):
        during, after = view.run(state, number)
        if during <= peak:
            yield from _orders(view, after, (*tasks, number), peak)


def _choices(view: View, tasks: tuple[int, ...]) -> Iterator[Choice]:
    done, options = 0, list[tuple[int | None, ...]]()
    for number in tasks:
        done |= 1 << number
        over = (t for t in view.tasks[number].over if not view.readers[t] & ~done)
        options.append((*over, None))
    return product(*options)


def _blocks(
    view: View, aligns: Sequence[int], tasks: tuple[int, ...], over: Choice
) -> tuple[list[int], list[Block]]:
    """For each tensor its block, and the blocks: tensors in one place are one block."""
    first, last = {0: 0}, {0: 0}
    for step, number in enumerate(tasks, 1):
        first[number + 1] = last[number + 1] = step
        last |= dict.fromkeys(view.tasks[number].reads, step)
    last |= dict.fromkeys(view.kept, len(tasks))
    home = {tensor: tensor for tensor in first}
    for number, taken in zip(tasks, over, strict=True):
        if taken is not None:
            home[number + 1] = home[taken]
    ends: dict[int, Block] = {}
    for tensor in first:
        size, at = view.sizes[tensor], home[tensor]
        block = ends.get(at, Block(size, first[tensor], 0))
        until, align = max(block.last, last[tensor]), max(block.align, aligns[tensor])
        ends[at] = Block(size, block.first, until, align)
    number_of = {at: n for n, at in enumerate(ends)}
    return [number_of[home[t]] if t in home else 0 for t in range(len(aligns))], list(ends.values())
