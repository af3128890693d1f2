"""The joint schedule: rows on demand, in place, whole tensors in between, all chosen together.

No value is computed twice, and sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import cost, timeline
from pipeline.plan.fit import fits, roomy
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import Notes, needed
from pipeline.search.joint.least import Found, least, within
from pipeline.strategies.base import Strategy
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial


@dataclass(frozen=True)
class Joint(Strategy):
    """For any graph; ``layout`` is the chains' and means nothing here.

    ``objective``: ``memory``: as little of it as possible; the others: as few calls of kernels as
    the board has room for.

    Attributes:
        accumulator_bits: of what loops over channels add up, where these are the plan; all else
            has exact sums.
    """

    name: ClassVar[str] = "joint"
    accumulator_bits: Literal[8, 16, 32] = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        self.choose("accumulator_bits", (8, 16, 32))

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        """Rows, unless one of the schedules of whole tensors, or of some of their channels, happens
        to need less, or whole tensors fit where they are to be fast.

        Raises:
            ThimbleError: for a graph without operators.
        """
        if graph.output == graph.input or graph.output in graph.constants:
            raise ThimbleError(f"{graph.name} has nothing to compute: try another network")
        if self.objective != "memory":
            whole = Ordinary().plan(graph, hardware)
            costs = cost(roomy(whole), graph, hardware)
            if fits(whole, costs, hardware)[hardware.activation_memory].fits:
                return self._named(whole, "ordinary")
            if found := within(graph, hardware, needed(graph)):
                return found.laid.plan(self.name, self._notes(found))
        found = least(graph, hardware, needed(graph))
        best = found.laid.plan(self.name, self._notes(found))
        for other in (Ordinary(), Partial(accumulator_bits=self.accumulator_bits)):
            plan = other.plan(graph, hardware)
            if _peak_bytes(plan) < _peak_bytes(best):
                best = self._named(plan, other.name)
        return best

    def _notes(self, found: Found) -> Notes:
        bound = ("order_bound_bytes", found.bound / 2)
        return ("form", "rows"), ("segments", found.segments), bound

    def _named(self, plan: Plan, form: str) -> Plan:
        return replace(plan, strategy=self.name, notes=(("form", form),))


def _peak_bytes(plan: Plan) -> float:
    return max(moment.live_bytes for moment in timeline(plan))
