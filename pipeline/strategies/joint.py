"""The joint schedule: rows on demand, in place, whole tensors in between, all chosen together.

No value is computed twice unless ``extra_macs`` allows it, and sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Literal

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import lacks, modelled_cycles
from pipeline.plan.cost import high_water_nibbles, timeline
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import Notes, needed, room
from pipeline.search.joint.least import Found, least, within
from pipeline.search.moves.whole import one_by_one
from pipeline.search.swap.best import Aim
from pipeline.search.swap.search import CODE_BYTES
from pipeline.search.view.pixels import PixelView
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.swap import card_share, searched

SURE = 0.98
"""Kernels are right to about 2 % of most networks (``bench_rows``): where whole tensors fit, rows
have to save more."""

FEWEST = 1e3
"""What a microsecond of the card counts where transfers are to be few: more than any wait."""


@dataclass(frozen=True)
class Joint(Strategy):
    """For any graph; ``layout`` is the chains' and means nothing here.

    ``objective``: ``memory``: as little of it as possible; the others: the fewest modelled cycles
    in the memory that there is. What does not fit a board with a card is swapped: with as few
    transfers as are found, or as fast, or, ``energy``, with little of both.

    Attributes:
        extra_macs: multiply–accumulates that may be repeated for less memory, as a share of the
            network's.
        accumulator_bits: of what loops over channels add up, where these are the plan; all else
            has exact sums.
        arena_limit_bytes: what the fastest plan may take, scratch included; 0: all that the board
            leaves.
        arena_limit_times_least: the same, as a multiple of what the least plan takes; 0: as above.
    """

    name: ClassVar[str] = "joint"
    glance_macs: ClassVar[int] = 15_000_000
    extra_macs: float = 0.0
    accumulator_bits: Literal[8, 16, 32] = 32
    arena_limit_bytes: int = 0
    arena_limit_times_least: float = 0.0

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
        if size < 0 or (times and times < 1):
            raise ThimbleError(f"{limits}: at least 1, or 0 for all that the board leaves")

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        """
        Raises:
            ThimbleError: for a graph without operators.
        """
        if graph.output == graph.input or graph.output in graph.constants:
            raise ThimbleError(f"{graph.name} has nothing to compute: try another network")
        whole = graph.weight_bytes <= _weights_room(hardware)
        if hardware.storage is None or whole:
            plan = self._in_memory(graph, hardware)
            fits = _arena_nibbles(plan, hardware) <= room(graph, hardware)
            if hardware.storage is None or fits:
                return plan
        try:
            return self._swapped(graph, hardware)
        except ThimbleError:  # cannot be cut into tiles
            return self._in_memory(graph, hardware)

    def _in_memory(self, graph: Graph, hardware: Hardware) -> Plan:
        if self.objective == "memory":
            return self._least(graph, hardware)
        return self._fastest(graph, hardware)

    def _swapped(self, graph: Graph, hardware: Hardware) -> Plan:
        """Segments of rows, with what neither SRAM nor flash holds on the card: as few transfers as
        possible, or as fast, or at as little energy."""
        shares = {"memory": FEWEST, "energy": card_share(hardware)}
        flash = max(0, _weights_room(hardware) - CODE_BYTES)
        aim = Aim(shares.get(self.objective, 0.0), flash if hardware.weights_in == "flash" else 0)
        plan = searched(self.name, graph, hardware, 1, aim)
        return replace(plan, notes=(("form", "swapped"), *plan.notes))

    def _least(self, graph: Graph, hardware: Hardware) -> Plan:
        """Rows, unless whole tensors, loops over their channels, or layers that overwrite each
        other pixel by pixel happen to need less."""
        repeated = int(self.extra_macs * graph.macs)
        found = least(graph, hardware, needed(graph), repeated)
        best = found.laid.plan(self.name, self._notes(found, graph))
        others: list[Strategy] = [Ordinary(), Partial(accumulator_bits=self.accumulator_bits)]

        def lacks_c(plan: Plan) -> bool:
            return bool(lacks(plan, graph, hardware))

        view = PixelView.of(graph.tensors, graph.input, needed(graph), graph.output)
        if view.least_nibbles < 2 * _peak_bytes(best):
            others.append(Herringbone())
        for other in others:
            try:
                plan = other.plan(graph, hardware)
            except ThimbleError:  # not a chain
                continue
            plan = self._named(plan, other.name)
            best = min(best, plan, key=lambda each: (lacks_c(each), _peak_bytes(each)))
        return best

    def _fastest(self, graph: Graph, hardware: Hardware) -> Plan:
        """Whole tensors if they fit, unless rows are surely faster; else rows, with whole operators
        among them; as little as possible where that is as fast, or nothing is found that fits."""
        smallest = self._least(graph, hardware) if self.arena_limit_times_least else None
        limit = room(graph, hardware)
        if self.arena_limit_bytes:
            limit = min(limit, 2 * self.arena_limit_bytes)
        if smallest is not None:
            times = self.arena_limit_times_least
            limit = min(limit, int(times * _arena_nibbles(smallest, hardware)))
        whole = self._named(one_by_one(graph, hardware, fast=True, cells=limit), "ordinary")
        fits = _arena_nibbles(whole, hardware) <= limit
        most = SURE * modelled_cycles(whole, graph, hardware) if fits else inf
        if found := within(graph, hardware, needed(graph), limit, most):
            fastest = found.laid.plan(self.name, self._notes(found, graph))
            plans = [fastest] if smallest is None else [smallest, fastest]
            if fits:  # the search may have taken faster kernels for granted
                plans.append(whole)
            return min(plans, key=lambda plan: modelled_cycles(plan, graph, hardware))
        return whole if fits else smallest or self._least(graph, hardware)

    def _notes(self, found: Found, graph: Graph) -> Notes:
        bound = ("order_bound_bytes", found.bound / 2)
        share = ("repeated_macs_pct", round(100 * found.repeated / max(1, graph.macs), 2))
        again = (share,) * bool(found.repeated)
        return ("form", "rows"), ("segments", found.segments), bound, *again

    def _named(self, plan: Plan, form: str) -> Plan:
        return replace(plan, strategy=self.name, notes=(("form", form),))


def _weights_room(hardware: Hardware) -> int:
    """Bytes of the memory that weights are read from."""
    memories = {memory.name: memory.bytes for memory in hardware.memories}
    return memories[hardware.weight_memory]


def _peak_bytes(plan: Plan) -> float:
    return max(moment.live_bytes for moment in timeline(plan))


def _arena_nibbles(plan: Plan, hardware: Hardware) -> int:
    return high_water_nibbles(plan, hardware.activation_memory, constants=False)
