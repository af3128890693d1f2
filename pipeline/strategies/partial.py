"""Partial execution along channels (Liberis & Lane, "Pex", 2023): no operator runs twice, and what
would be the largest tensors never exist whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.lower import Laid, lay, needed, with_room
from pipeline.search.channels.in_place import Places, whole, wider
from pipeline.search.channels.replay import peak, replay
from pipeline.search.channels.schedule import Schedule, loops, regions, schedule
from pipeline.search.channels.search import Best, Rules, Search, TooManyStates, search
from pipeline.search.channels.widths import at_most, widest
from pipeline.search.order import least_peak
from pipeline.search.view.whole import View
from pipeline.strategies.base import ANY, Strategy

MOST_STATES = 10_000


@dataclass(frozen=True)
class Partial(Strategy):
    """
    Attributes:
        search: ``pex`` is Algorithm 1 as published; ``exact`` finds the least peak of all
            sequences of its rules, and with it the fewest accumulating layers.
        accumulator_bits: of an element of a tensor that is accumulated in a loop: 8, 16 or 32.
        channels: computed at once in every loop; 0: in each as many as don't raise the peak.
    """

    name: ClassVar[str] = "partial"
    glance_macs: ClassVar[int] = ANY
    search: Search = "exact"
    accumulator_bits: Literal[8, 16, 32] = 32
    channels: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.choose("search", ("pex", "exact"))
        self.choose("accumulator_bits", (8, 16, 32))
        if not isinstance(self.channels, int) or self.channels < 0:
            raise ThimbleError(
                f"strategy.channels={self.channels}: how many channels a loop computes at once, or "
                "0 for as many as don't raise the peak"
            )

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        arriving = Arriving.of(graph, hardware)
        operators = [op for op in needed(graph) if op is not arriving.pool]
        start, bits = arriving.start.name, self.accumulator_bits
        best, found = self.scheduled(graph, start, operators)

        def laid(schedule: Schedule, scratch: bool) -> Laid:
            parts = regions(schedule, graph, operators)
            return lay([arriving, *parts], graph, hardware, accumulator_bits=bits, scratch=scratch)

        fast = self.in_place(found, best.peak, graph, start, operators, hardware)
        ways = {True: fast, False: found}  # kernels that work in place have scratch
        chosen = with_room(lambda scratch: _narrowed(ways[scratch], partial(laid, scratch=scratch)))
        found = ways[chosen.draft.scratch]
        sums = sum(len(loop.made_by("accumulate")) for loop in loops(found))
        return chosen.plan(
            self.name,
            (
                ("accumulate_layers", sums),
                ("accumulator_bits", bits),
                ("loops", sum(1 for _ in loops(found))),
                ("search_states", best.states),
            ),
        )

    def scheduled(
        self, graph: Graph, start: str, operators: Sequence[Operator]
    ) -> tuple[Best, Schedule]:
        """What the search found, and the schedule with its channels at once, replayed."""
        view, best = self.best(View.of(graph.tensors, start, operators, graph.output))
        found = schedule(view, best.moves, self.channels or 1)
        loads = replay(found, graph, start, operators, self.accumulator_bits)
        if (held := max(peak(found, loads), view.sizes[0])) != best.peak:
            raise ThimbleError(
                f"strategy=partial planned {best.peak / 2:g} B for {graph.name}, but its schedule "
                f"holds {held / 2:g} B: please report it"
            )
        return best, found if self.channels else widest(found, loads, best.peak)

    def in_place(
        self, found: Schedule, peak: int, graph: Graph, start: str, operators: Sequence[Operator],
        hardware: Hardware,
    ) -> Schedule:  # fmt: skip
        """``found``, or the schedule within ``peak`` nibbles that rounds fewer sums because kernels
        of the board work in place, which the published rules know of sums alone."""
        if self.channels or self.search == "pex":
            return found
        makers, places = {op.output: op for op in operators}, Places(graph, hardware)

        def wide(plan: Schedule) -> Schedule:
            loads = replay(plan, graph, start, operators, self.accumulator_bits)
            return widest(plan, loads, peak)

        view = View.of(graph.tensors, start, operators, graph.output)
        tasks = (
            task._replace(over=task.reads) if places.able(op) else task
            for task, op in zip(view.tasks, operators, strict=True)
        )
        view = replace(view, tasks=tuple(tasks))
        sums = sum(len(loop.made_by("accumulate")) for loop in loops(found))
        rules = Rules(view, self.accumulator_bits)
        try:
            fewest = search(rules, "exact", MOST_STATES, peak) if sums else None
        except TooManyStates:
            fewest = None
        if fewest and fewest.accumulated < sums:
            plan = schedule(view, fewest.moves, 1)
            found = wide(whole(plan, makers, places, graph.output))
        return wider(found, wide, makers, places)

    def best(self, view: View) -> tuple[View, Best]:
        """Over all orders; where those are too many, in the order that is best without loops; where
        even that is too much, without loops."""
        rules = Rules(view, self.accumulator_bits, self.channels or 1)
        try:
            return view, search(rules, self.search, MOST_STATES)
        except TooManyStates:
            operators = [view.operators[n] for n in least_peak(view).tasks]
            names = [view.names[n] for n in view.kept]
            view = View.of(view.tensors, view.names[0], operators, *names)
        try:
            rules = replace(rules, view=view, reach="given")
            return view, search(rules, self.search, MOST_STATES)
        except TooManyStates:
            return view, search(replace(rules, reach="whole"), "pex", MOST_STATES)


def _narrowed(schedule: Schedule, laid: Callable[[Schedule], Laid]) -> Laid:
    """With fewer channels at once where that makes the arena smaller: what is held at once may
    fit the peak and still not pack into it."""
    best = laid(schedule)
    channels = max((loop.at_once for loop in loops(schedule)), default=1)
    while best.cells > best.bound and channels > 1:
        channels //= 2
        other = laid(at_most(schedule, channels))
        if other.cells < best.cells:
            best = other
    return best
