"""Propose whole tensors, one operator after the other: when each runs, and which outputs take an
input's place.

The least peak first, then the smallest arena. Where the first order with every output in place
cannot be packed into its own peak, other choices of places and other orders with that peak are
tried, until one can or all have been.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from math import inf

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, scratch_bytes
from pipeline.placement.blocks import WORD, Block, Profile, Profiles, load, put_over, round_up
from pipeline.placement.place import place
from pipeline.plan.vocabulary import KEPT, Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import Region, lay, needed, room
from pipeline.schedules.whole import Whole
from pipeline.search.order import Order, least_peak
from pipeline.search.quicker import quickest
from pipeline.search.view.whole import State, View, members

EFFORT = 1_000_000
"""Effort of the search over orders and places: steps of about a microsecond."""

Choice = tuple[int | None, ...]
"""For each task of an order, the input whose place its output takes."""
Under = dict[int, tuple[int, int]]
"""By tensor the one whose place it takes, and the nibbles from that one's beginning."""


@dataclass(frozen=True)
class Ordered:
    """
    Attributes:
        over: for each task in ``order`` the tensor whose place its output takes, or None.
        cells: of the smallest arena that was found.
        proved: no order with this peak, whatever is done in place, has a smaller arena.
    """

    order: Order
    over: Choice
    cells: int
    proved: bool


def one_by_one(
    graph: Graph,
    hardware: Hardware,
    *,
    keep_input: bool = False,
    fast: bool = False,
    cells: int | None = None,
) -> Plan:
    """Return a plan of whole tensors for any graph.

    Args:
        keep_input: nothing is written over the input, so that it need not be given anew.
        fast: kernels that trade flash and scratch for speed run what they are faster at, as far as
            flash and ``cells`` nibbles of the arena, all if not said, suffice.

    Raises:
        ThimbleError: where nothing is to be computed, or an input that streams in is to be kept.
    """
    arriving = Arriving.of(graph, hardware)
    if keep_input and arriving.streams:
        raise ThimbleError(
            "strategy.preserve_input: on this board the input streams in and is gone "
            "once it is read; set hardware.streams_input=false, or leave preserve_input out"
        )
    operators = [op for op in needed(graph) if op is not arriving.pool]
    kept = (*graph.ends, *[arriving.start.name] * keep_input)
    view = View.each(graph, arriving.starts, operators, kept, 2 * hardware.alignment_bytes)
    aligns = [
        max(2 * hardware.alignment_bytes, graph.tensors[n].dtype.bits // 4) if n else 1
        for n in view.names
    ]
    view = replace(view, sizes=tuple(map(round_up, view.sizes, aligns)))
    sums = [Profile((Block(each, 0, 0),), WORD) for each in arriving.beside.values()]
    begun = len(view.tasks) - len(operators)
    scratch = [2 * scratch_bytes(Form.whole(op, graph), hardware) for op in operators]
    scratch = [0] * begun + scratch
    tasks = (task._replace(scratch=n) for task, n in zip(view.tasks, scratch, strict=True))
    found = ordered(replace(view, tasks=tuple(tasks)), aligns, sums)
    if found.cells > room(graph, hardware):
        found = ordered(view, aligns, sums)
    under, regions = _lives(view, found.order.tasks, found.over)[0], list[Region]([arriving])
    for number in found.order.tasks[begun:]:
        op, (taken, behind) = operators[number - begun], under.get(number + 1, (0, 1))
        place = "" if behind else view.names[taken]  # behind others that are joined later
        if place in op.inputs:
            into = ((n, at) for n, (first, at) in under.items() if at and first == taken)
            joined = tuple((view.names[n], at) for n, at in into)
            regions.append(Whole(op, place, joined=joined))
        else:
            regions.append(Whole(op, place=place))
    laid = partial(lay, regions, keep_input=keep_input, effort=EFFORT)
    best = laid(Draft(graph, hardware))
    if fast and not best.draft.most_scratch:
        most = room(graph, hardware) if cells is None else cells
        best = quickest(graph, hardware, operators, partial(laid, cells=inf), most, best)
    proved = ("order_proved", found.order.proved), ("arena_proved", found.proved)
    return best.plan("ordinary", (*proved, *[(KEPT, True)] * keep_input))


def ordered(view: View, aligns: Sequence[int], extra: Sequence[Profile] = ()) -> Ordered:
    """Order and places for ``view``; each tensor's address is a multiple of its ``aligns``.

    Step 0 is before the first task; ``extra`` profiles live by these steps.
    """
    order = least_peak(view)
    starts = [Profile((Block(view.sizes[0], 0, 0),)), *extra]
    peak = least = max(order.peak, load(Profiles(starts)))
    if len(view.given) != 1:  # some may lie elsewhere than their tasks say
        held = profiles_of(view, aligns, order.tasks, next(_choices(view, order.tasks)))
        peak = max(least, load(Profiles([*held, *extra])))
    best, complete, effort = None, True, EFFORT
    others = (tasks for tasks in _orders(view, view.first, (), peak) if tasks != order.tasks)
    # the order found, with every output in place, comes first
    orders = chain([order.tasks], others)
    for tasks, over in ((each, over) for each in orders for over in _choices(view, each)):
        if effort <= 0:
            complete = False
            break
        profiles = Profiles([*profiles_of(view, aligns, tasks, over), *extra])
        if load(profiles) > peak:
            effort -= 20 * len(profiles) * int(profiles.offset.any())
            continue
        placed = place(profiles, effort=effort // (20 if profiles.offset.any() else 2))
        effort -= placed.effort + 20 * len(profiles)
        complete &= placed.proved
        if best is None or placed.cells < best.cells:
            best = Ordered(replace(order, tasks=tasks), over, placed.cells, False)
        if best.cells == least:
            break
    assert best is not None
    proved = order.proved and (complete or best.cells == least)
    return replace(best, proved=proved)


def _orders(
    view: View, state: State, tasks: tuple[int, ...], peak: int
) -> Iterator[tuple[int, ...]]:
    """Yield those that go on from ``state`` after ``tasks``, with no more than ``peak``."""
    if not state.open:
        yield tasks
    for number in members(state.open):
        during, after = view.run(state, number)
        if during <= peak:
            yield from _orders(view, after, (*tasks, number), peak)


def _choices(view: View, tasks: tuple[int, ...]) -> Iterator[Choice]:
    """Yield every choice of dying inputs whose places outputs take; None for an output apart, but
    for what would have to be copied then."""
    done, options = 0, list[tuple[int | None, ...]]()
    made_again = {made for _, made in view.again}
    for number in tasks:
        done |= 1 << number
        task = view.tasks[number]
        over = tuple(t for t in task.over if not view.readers[t] & ~done)
        if task.before:
            over = over[:1] if over == task.over else ()
        at_home = task.before or number + 1 in made_again
        options.append(over if over and at_home else (*over, None))
    return product(*options)


def _base(under: Under, tensor: int) -> tuple[int, int]:
    """The tensor in whose place it lies in the end, and the nibbles from that one's beginning."""
    at = 0
    while tensor in under:
        tensor, more = under[tensor]
        at += more
    return tensor, at


def _lives(
    view: View, tasks: tuple[int, ...], over: Choice
) -> tuple[Under, dict[int, int], dict[int, int]]:
    """Find what takes whose place when ``tasks`` run, and the steps that make each tensor and that
    need it last. What the next call finds goes where it looks for it, where that is free from then
    on; nothing else that lives to the end does."""
    under, first, last = Under(), {0: 0}, {0: 0}
    reads = {made: read for read, made in view.again}
    for step, (number, taken) in enumerate(zip(tasks, over, strict=True), 1):
        task, made = view.tasks[number], number + 1
        first[made] = step
        last |= dict.fromkeys((made, *task.reads), step)
        pairs = zip(task.over, task.before, strict=False)  # of most none
        joined = [(_base(under, tensor)[0], tensor, at) for tensor, at in pairs]
        fit = all(view.sizes[whole] <= view.sizes[tensor] for whole, tensor, _ in joined)
        if taken is not None and made in view.kept:
            fit &= _base(under, taken)[0] not in {*reads.values()} - {reads.get(made)}
        if taken is not None and fit and len({whole for whole, *_ in joined}) == len(joined):
            under |= {whole: (taken, at) for whole, _, at in joined[1:]}
            under[made] = taken, 0
    last |= dict.fromkeys(view.kept, len(tasks))
    for made, read in reads.items():
        free = last[read] < first[made] and all(_base(under, t)[0] != read for t in under)
        under |= {made: (read, 0)} if free and made not in under else {}
    return under, first, last


def profiles_of(
    view: View, aligns: Sequence[int], tasks: tuple[int, ...], over: Choice
) -> list[Profile]:
    """Make profiles of what lives when: one for tensors in one place, one for a task's scratch."""
    under, first, last = _lives(view, tasks, over)
    scratch = [Profile((Block(size, step, step),), WORD) for step, number in enumerate(tasks, 1)
               if (size := view.tasks[number].scratch)]  # fmt: skip
    parts, align = dict[int, list[tuple[int, Block]]](), dict[int, int]()
    for tensor, begin in first.items():
        if not view.sizes[tensor]:
            continue
        at, behind = _base(under, tensor)
        put_over(parts.setdefault(at, []), behind, Block(view.sizes[tensor], begin, last[tensor]))
        align[at] = max(align.get(at, 1), aligns[tensor])
    for read in (read for read, made in view.again if _base(under, made)[0] != read):
        put_over(parts[read], 0, Block(view.sizes[read], len(tasks) + 1, len(tasks) + 1))
    found = []
    for at, placed in parts.items():
        offsets, blocks = zip(*placed, strict=True)
        found.append(Profile(blocks, align[at], offsets if any(offsets) else ()))
    return [*found, *scratch]
