"""The strategy to start with: the fastest plan that fits the board, whichever strategy makes it.

Sums are exact and nothing is computed twice, so that outputs are those of ordinary execution.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import lacks
from pipeline.plan.fit import CHOSEN
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import room
from pipeline.search.moves.pixels import Form, in_place
from pipeline.search.moves.whole import one_by_one
from pipeline.search.planner import Keys, Planner, arena_nibbles
from pipeline.strategies.base import Objective, Strategy

IN_PLACE: tuple[Form, ...] = ("replace", "herringbone", "single_transpose")
"""The fastest first."""


@dataclass(frozen=True)
class Auto(Strategy):
    """Whole tensors where they fit, else rows among them (``joint``); of chains of few bits, the
    order of pixels in place that fits; with a card, what does not fit is swapped.

    ``objective``: ``memory`` takes whatever needs least; the others the fastest that fits.
    """

    name: ClassVar[str] = "auto"
    objective: Objective = "latency"

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        """Return the chosen strategy's plan, with a note ``auto`` that says why.

        Raises:
            ThimbleError: when no strategy has a plan for which there is code.
        """
        available, found, why = room(graph, hardware), list[Plan](), ""
        result = sum(graph.tensors[name].nibbles for name in graph.outputs)
        for made in self._ways(graph, hardware):
            try:
                plan = made()
                why = lacks(plan, graph, hardware)
            except ThimbleError as error:
                why = str(error)
            if why:
                continue
            form, needed = dict(plan.notes).get("form"), arena_nibbles(plan, hardware)
            if form == "swapped" and needed < result:
                why = "it would leave its outputs on the card"
                continue
            found.append(replace(plan, strategy=form) if form == "ordinary" else plan)
            if self.objective != "memory" and needed <= available:
                break
        if not found:
            raise ThimbleError(
                f"strategy=auto: no strategy has code for {graph.name} on {hardware.name}: {why}; "
                "use another board or network"
            )
        chosen = min(found, key=lambda each: arena_nibbles(each, hardware))
        said = (CHOSEN, self._why(chosen, available, graph, hardware))
        return replace(chosen, notes=(*chosen.notes, said))

    def _ways(self, graph: Graph, hardware: Hardware) -> Iterator[Callable[[], Plan]]:
        """Yield each by the strategy that one would type for it, the fastest first of those whose
        cycles are modelled alike. Of few bits pixel by pixel before row by row: nothing is computed
        as the input comes, for which a serial line may leave too little time."""
        if any(tensor.dtype.bits < 8 for tensor in graph.tensors.values()):
            yield partial(one_by_one, graph, hardware)
            for arriving in (False, True) if hardware.streams_input else (False,):
                for form in IN_PLACE:
                    yield partial(in_place, graph, hardware, form, convolve=arriving)
        yield Planner(graph, hardware, Keys(self.objective)).plan

    def _why(self, chosen: Plan, available: int, graph: Graph, hardware: Hardware) -> str:
        called, needed = chosen.strategy.partition("/")[0], arena_nibbles(chosen, hardware)
        size, fits = f"{called}, an arena of {needed / 2:,.0f} B", needed <= available
        left = f"where {available / 2:,.0f} are left"
        if called == "ordinary":
            return f"{size} {left}" + ("; nothing is surely faster" if fits else "")
        whole = arena_nibbles(one_by_one(graph, hardware), hardware)
        beside = f"ordinary would need {whole / 2:,.0f}"
        if whole <= available and self.objective != "memory":
            beside = "ordinary would fit, and be slower"
        return f"{size}{'' if fits else ', the least found,'} {left}; {beside}"
