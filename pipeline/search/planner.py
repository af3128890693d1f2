"""Choose among moves: rows on demand, whole tensors, loops over channels, pixels in place, and what
a card holds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Literal

from pipeline.anytime import CUT_SHORT, AnytimeSearch
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import lacks, modelled_cycles
from pipeline.plan.cost import high_water_nibbles, timeline
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import streaming
from pipeline.schedules.lower import Notes, needed, room
from pipeline.search.joint.least import Found, least, within
from pipeline.search.moves.channels import ByChannels
from pipeline.search.moves.pixels import in_place
from pipeline.search.moves.strips import patched
from pipeline.search.moves.swap import card_share, searched
from pipeline.search.moves.whole import one_by_one
from pipeline.search.swap.best import Aim
from pipeline.search.swap.search import CODE_BYTES
from pipeline.search.view.pixels import PixelView

NAME = "joint"
"""Name of the strategy in plans."""

SURE = 0.98
"""Kernels are right to about 2 % of most networks (``bench_rows``): where whole tensors fit, rows
have to save more."""

WOVEN = 400_000
"""Pixels of blocks of operators that are made in turn, at the usual effort: some minutes' work."""

FEWEST = 1e3
"""Weight of a microsecond of the card if transfers are to be few: more than any wait."""


@dataclass(frozen=True)
class Keys:
    """
    Attributes:
        objective: ``memory``, or what the fastest plan is for, see strategy ``joint``.
        extra_macs: multiply–accumulates that may be repeated for less memory, as a share of the
            network's.
        accumulator_bits: of what loops over channels add up, where these are the plan; all else
            has exact sums.
        arena_limit_bytes: what the fastest plan may take, scratch included; 0: all that the board
            leaves.
        arena_limit_times_least: the same, as a multiple of what the least plan takes; 0: as above.
        effort: counted work of the search, as a multiple of the usual: the same plan anywhere.
        seconds: after so many the best plan so far is the plan, marked as cut short and not kept;
            0: however long it takes.
    """

    objective: str = "memory"
    extra_macs: float = 0.0
    accumulator_bits: Literal[8, 16, 32] = 32
    arena_limit_bytes: int = 0
    arena_limit_times_least: float = 0.0
    effort: float = 1.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Planner:
    """The joint schedule of a graph for a board."""

    graph: Graph
    hardware: Hardware
    keys: Keys

    def plan(self) -> Plan:
        """
        Raises:
            ThimbleError: for a graph without operators.
        """
        graph, hardware = self.graph, self.hardware
        needed(graph)  # or there is nothing to plan
        whole = graph.weight_bytes <= hardware.bytes_of(hardware.weight_memory)
        if hardware.storage is None or whole:
            plan = self._in_memory()
            if hardware.storage is None or arena_nibbles(plan, hardware) <= room(graph, hardware):
                return plan
        try:
            return self._swapped()
        except ThimbleError:  # cannot be cut into tiles
            return self._in_memory()

    def _in_memory(self) -> Plan:
        with AnytimeSearch[Plan](self.keys.seconds) as anytime:
            found = self._least if self.keys.objective == "memory" else self._fastest
            return found(anytime)
        assert anytime.best
        return replace(anytime.best, notes=(*anytime.best.notes, CUT_SHORT))

    def _swapped(self) -> Plan:
        """Segments of rows, with what neither SRAM nor flash holds on the card: as few transfers as
        possible, or as fast, or at as little energy."""
        shares = {"memory": FEWEST, "energy": card_share(self.hardware)}
        flash = self.hardware.flash_bytes if self.hardware.weights_in == "flash" else 0
        aim = Aim(shares.get(self.keys.objective, 0.0), max(0, flash - CODE_BYTES))
        plan = searched(NAME, self.graph, self.hardware, 1, aim, self.keys.seconds)
        return replace(plan, notes=(("form", "swapped"), *plan.notes))

    def _least(self, anytime: AnytimeSearch[Plan]) -> Plan:
        """Whole tensors, rows, loops over channels, or layers that overwrite each other pixel by
        pixel: what holds least; of those that hold as much, rows first."""
        channels = ByChannels(accumulator_bits=self.keys.accumulator_bits)
        moves: dict[str, Callable[[float], Plan]] = {
            "ordinary": lambda _: one_by_one(self.graph, self.hardware),
            "rows": self._rows,
            "partial": lambda _: channels.plan(self.graph, self.hardware),
            "herringbone": self._pixels,
        }
        best, least = None, (True, inf, 0)
        for number, (form, move) in enumerate(moves.items()):
            anytime.tries(form, number / len(moves))
            try:
                plan = move(inf if least[0] else least[1])
            except ThimbleError:  # not a chain, or no better
                continue
            lacking = bool(lacks(plan, self.graph, self.hardware))
            rank = lacking, _peak_bytes(plan), 0 if form == "rows" else number
            if best is None or rank < least:
                best, least = plan if form == "rows" else _named(plan, form), rank
                anytime.has(best, f"{rank[1]:,.0f} B")
                if not self.keys.extra_macs and self.keys.accumulator_bits == 32:
                    anytime.bounded(self._bound)
        assert best is not None, "whole tensors are a plan of any graph"
        return best

    def _bound(self) -> str:
        from pipeline.search.lower_bound import lower_bound  # with it comes scipy

        graph, streamed = self.graph, streaming(self.graph, self.hardware)
        return f"{lower_bound(graph, needed(graph), streamed).bytes:,.0f} B"

    def _rows(self, _: float) -> Plan:
        again = int(self.keys.extra_macs * self.graph.macs)
        runs = patched(self.graph, self.hardware, again) if again else ()
        found = least(self.graph, self.hardware, runs, self.keys.effort)
        return found.laid.plan(NAME, self._notes(found))

    def _pixels(self, peak_bytes: float) -> Plan:
        """Refuse where they hold ``peak_bytes`` or more between parts already, or are too many."""
        graph = self.graph
        view = PixelView.of(graph.tensors, (graph.start,), needed(graph), graph.end)
        blocks = [view.part(span) for span in view.spans() if span.stop - span.first > 1]
        woven = sum(prod(graph.tensors[op.output].shape[:-1]) for each in blocks for op in each)
        ends = (view.nibbles(end) for span in view.spans() for end in span)
        if max(ends, default=0) >= 2 * peak_bytes or woven > self.keys.effort * WOVEN:
            raise ThimbleError("pixels in place: no less memory, or too many")
        return in_place(graph, self.hardware, "herringbone")

    def _fastest(self, anytime: AnytimeSearch[Plan]) -> Plan:
        """Whole tensors if they fit, unless rows are surely faster; else rows, with whole operators
        among them; as little as possible where that is as fast, or nothing is found that fits."""
        graph, hardware, keys = self.graph, self.hardware, self.keys
        smallest = self._least(anytime) if (times := keys.arena_limit_times_least) else None
        limit = room(graph, hardware)
        if keys.arena_limit_bytes:
            limit = min(limit, 2 * keys.arena_limit_bytes)
        if smallest is not None:
            limit = min(limit, int(times * arena_nibbles(smallest, hardware)))
        whole = _named(one_by_one(graph, hardware, fast=True, cells=limit), "ordinary")
        fits = arena_nibbles(whole, hardware) <= limit
        most = SURE * modelled_cycles(whole, graph, hardware) if fits else inf
        if fits and smallest is None:
            anytime.has(whole, f"{_peak_bytes(whole):,.0f} B")
        anytime.tries("rows", 0.5)
        if found := within(graph, hardware, limit, most, keys.effort):
            fastest = found.laid.plan(NAME, self._notes(found))
            plans = [fastest] if smallest is None else [smallest, fastest]
            if fits:  # the search may have taken faster kernels for granted
                plans.append(whole)
            return min(plans, key=lambda plan: modelled_cycles(plan, graph, hardware))
        return whole if fits else smallest or self._least(anytime)

    def _notes(self, found: Found) -> Notes:
        bound = ("order_bound_bytes", found.bound / 2)
        share = ("repeated_macs_pct", round(100 * found.repeated / max(1, self.graph.macs), 2))
        form = ("form", "rows"), ("segments", found.segments), bound
        return (*form, share) if found.repeated else form


def arena_nibbles(plan: Plan, hardware: Hardware) -> int:
    return high_water_nibbles(plan, hardware.activation_memory, constants=False)


def _named(plan: Plan, form: str) -> Plan:
    return replace(plan, strategy=NAME, notes=(("form", form),))


def _peak_bytes(plan: Plan) -> float:
    return max(moment.live_bytes for moment in timeline(plan))
