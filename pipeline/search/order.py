"""The order of tasks with the least peak: best-first search over sets of done tasks.

What is held after a set of tasks does not depend on their order, so the orders of a set are one
state, and the least peak to reach it is a shortest path whose length is its largest edge (Dijkstra
with max for plus). Two things keep it small:

- A task that now raises neither the peak nor what is held is run at once. That is never wrong:
  run earlier, it frees at least as much and lets every other task hold no more, because a tensor
  that dies for fewer done tasks dies for more.
- No state is kept that is not below the best order known.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.search.view.whole import State, View, members

EFFORT = 200_000
"""Tasks tried before the search gives up: about a second."""

WIDTHS = (1, 32)


@dataclass(frozen=True)
class Order:
    """``peak`` is that of ``tasks``; no order has less than ``bound``."""

    tasks: tuple[int, ...]
    peak: int
    bound: int

    @property
    def proved(self) -> bool:
        return self.peak == self.bound


def least_peak(view: View, effort: int = EFFORT, widths: Sequence[int] = WIDTHS) -> Order:
    """Return the order with the least peak; the given order if that is one of the best.

    After about ``effort`` tries the best order known is returned with a bound that is proved.
    ``widths``: of the beams that look for a first good order.
    """
    least, known = floor(view), tuple(range(len(view.tasks)))
    for width in widths:
        if view.peak(known) > least:
            known = min((known, beam(view, width)), key=view.peak)
    best = view.peak(known)
    heap: list[tuple[int, int, State]] = []
    came: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    reached = {0: least}
    if least < best:
        heapq.heappush(heap, (least, 0, view.first))
    while effort > 0:
        if not heap:
            return Order(known, best, best)
        peak, _, state = heapq.heappop(heap)
        if peak > reached[state.done]:
            continue
        if not state.open:
            return Order(_path(came, state.done), peak, peak)
        for number in members(state.open):
            during, after = view.run(state, number)
            top, effort = max(peak, during), effort - 1
            if top >= best:
                continue
            after, free = _settle(view, after, top)
            effort -= len(free) * after.open.bit_count()
            if top < reached.get(after.done, best):
                reached[after.done] = top
                came[after.done] = state.done, (number, *free)
                heapq.heappush(heap, (top, -after.done.bit_count(), after))
    return Order(known, best, min([best, *(peak for peak, _, _ in heap)]))


def beam(view: View, width: int, cost: Callable[[float, int], float] = max) -> tuple[int, ...]:
    """Task by task, keeping the ``width`` best sets of done tasks: those of least ``cost``, given
    that of the tasks before and what is held during one more, then those after which least is."""
    kept: list[tuple[float, State, tuple[int, ...]]] = [(0, view.first, ())]
    for _ in view.tasks:
        found: dict[int, tuple[float, State, tuple[int, ...]]] = {}
        for before, state, order in kept:
            for number in members(state.open):
                during, after = view.run(state, number)
                top = cost(before, during)
                if after.done not in found or top < found[after.done][0]:
                    found[after.done] = top, after, (*order, number)
        kept = sorted(found.values(), key=lambda each: (each[0], each[1].cells, each[2]))[:width]
    return kept[0][2]


def floor(view: View) -> int:
    """Bound all orders: each task holds its inputs, its scratch, and its output unless it may
    overwrite an input."""
    alone = (
        sum(view.sizes[t] for t in task.reads)
        + view.sizes[number]
        - max((view.shared(number - 1, t) for t in task.over), default=0)
        + task.scratch
        for number, task in enumerate(view.tasks, 1)
    )
    return max([view.sizes[0], *alone])


def _settle(view: View, state: State, peak: int) -> tuple[State, tuple[int, ...]]:
    """Run all that costs nothing."""
    free: list[int] = []
    while True:
        for number in members(state.open):
            during, after = view.run(state, number)
            if during <= peak and after.cells <= state.cells:
                state = after
                free.append(number)
                break
        else:
            return state, tuple(free)


def _path(came: dict[int, tuple[int, tuple[int, ...]]], done: int) -> tuple[int, ...]:
    parts: list[tuple[int, ...]] = []
    while done:
        done, part = came[done]
        parts.append(part)
    return tuple(number for part in reversed(parts) for number in part)
