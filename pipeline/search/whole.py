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
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware
from pipeline.kernels import Form, scratch_bytes
from pipeline.placement.blocks import WORD, Block, load, round_up
from pipeline.placement.pack import pack
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.lower import room
from pipeline.search.order import Order, least_peak
from pipeline.search.work import State, Task, Work

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
    names = [arriving.start.name, *(op.output for op in operators)]
    number = {name: n for n, name in enumerate(names)}
    tensors = [graph.tensors[name] for name in names]
    aligns = [_alignment(tensor, hardware) for tensor in tensors]
    sizes = tuple(
        round_up(tensor.size * tensor.dtype.bits // 4, align)
        for tensor, align in zip(tensors, aligns, strict=True)
    )
    sums = [Block(nibbles, 0, 0, WORD) for nibbles in arriving.beside.values()]

    def placed(scratch: bool) -> Placement:
        needs = [2 * scratch * scratch_bytes(Form.whole(op, graph), hardware) for op in operators]
        tasks = tuple(
            _task(op, graph, number, cells) for op, cells in zip(operators, needs, strict=True)
        )
        tasks = _keeping(tasks, 0) if keep_input else tasks
        return place(Work(sizes, tasks, 0, number[graph.output]), aligns, sums)

    found = placed(scratch=True)
    if found.cells > room(graph, hardware):
        found = placed(scratch=False)
    chosen = tuple(
        (operators[task], "" if over is None else names[over])
        for task, over in zip(found.order.tasks, found.over, strict=True)
    )
    return Ordered(chosen, found.order, found.proved)


def _task(op: Operator, graph: Graph, number: dict[str, int], scratch: int) -> Task:
    reads = tuple(number[name] for name in dict.fromkeys(op.inputs))
    over = tuple(number[name] for name in op.overwritable(graph.tensors))
    return Task(reads, number[op.output], over, scratch)


def _keeping(tasks: tuple[Task, ...], tensor: int) -> tuple[Task, ...]:
    """``tensor`` is there until the end: the last task, which makes the output, reads it, too."""
    *others, last = tasks
    over = tuple(each for each in last.over if each != tensor)
    return (*others, replace(last, reads=tuple(sorted({*last.reads, tensor})), over=over))


def _alignment(tensor: Tensor, hardware: Hardware) -> int:
    """Nibbles: the board's, and a multiple of an element."""
    return max(2 * hardware.alignment_bytes, tensor.dtype.bits // 4)


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
        blocks = [*blocks, *_scratch(work, tasks), *extra]
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


def _scratch(work: Work, tasks: tuple[int, ...]) -> list[Block]:
    """A block for each task that has scratch."""
    return [
        Block(work.tasks[number].scratch, step, step, WORD)
        for step, number in enumerate(tasks, 1)
        if work.tasks[number].scratch
    ]


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
