"""The joint schedule: rows on demand, in place, whole tensors in between, all chosen together.

No value is computed twice unless ``extra_macs`` allows it, and sums are exact.
"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.joint.least import at_peak
from pipeline.search.planner import Keys, Planner
from pipeline.strategies.base import Estimate, Strategy


@dataclass(frozen=True)
class Joint(Strategy, Keys):
    """For any graph. ``objective``: ``memory``: as little of it as possible; the others: the fewest
    modelled cycles in the memory that there is. What does not fit a board with a card is swapped:
    with as few transfers as are found, or as fast, or, ``energy``, with little of both.
    """

    name: ClassVar[str] = "joint"
    quick_plan_macs: ClassVar[int] = 15_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.choose("accumulator_bits", (8, 16, 32))
        share = self.extra_macs
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < inf:
            raise ThimbleError(
                f"strategy.extra_macs={share}: the share of the network's "
                "multiply-accumulates that may be repeated, 0 or more, such as 0.1"
            )
        size, times = self.arena_limit_bytes, self.arena_limit_times_least
        limits = f"strategy.arena_limit_bytes={size} strategy.arena_limit_times_least={times:g}"
        if size and times:
            raise ThimbleError(f"{limits}: give one of them")
        if (size or times) and self.objective == "memory":
            raise ThimbleError(
                f"{limits}: objective=memory takes as little as it finds; a limit is for "
                "strategy.objective=latency"
            )
        for key, needs in (("effort", "more than 0"), ("seconds", "0 or more")):
            value = getattr(self, key)
            if not 0 <= value < inf or (key == "effort" and not value):
                raise ThimbleError(f"strategy.{key}={value}: a number, {needs}, such as 10")
        if size < 0 or (times and times < 1):
            raise ThimbleError(f"{limits}: at least 1, or 0 for all that the board leaves")

    def estimate(self, graph: Graph, hardware: Hardware) -> Estimate | None:
        """Estimate by rows, which most plans have."""
        if self.objective != "memory" or self.extra_macs:
            return None
        peak, level = at_peak(graph, hardware)
        return Estimate(peak / 2, level)

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return Planner(graph, hardware, self).plan()
