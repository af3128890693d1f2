"""Propose loops over channels (Liberis & Lane, "Pex", 2023): no operator runs twice, and what would
be the largest tensors never exist whole.

Beyond the published rules, channels are written over those that they are made of, where kernels of
the core can, so that more of them pass through a loop at once, and fewer sums are rounded, within
the peak of those rules.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, takes_place
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.channels import Channels, Pass
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import lay, needed
from pipeline.schedules.whole import Whole
from pipeline.search.channels.search import Best, Rules, Search, search
from pipeline.search.order import least_peak
from pipeline.search.view.whole import View, members

MOST_STATES = 10_000

Schedule = Sequence[Whole | Channels]

Able = Callable[[Operator, int], bool]
"""See ``Rules``."""


@dataclass(frozen=True)
class ByChannels:
    """
    Attributes:
        search: ``pex`` is Algorithm 1 as published; ``exact`` finds the least peak of all
            sequences of its rules, and with it the fewest accumulating layers.
        accumulator_bits: of an element of a tensor that is accumulated in a loop: 8, 16 or 32.
        channels: computed at once in every loop; 0: in each as many as don't raise the peak.
    """

    search: Search = "exact"
    accumulator_bits: Literal[8, 16, 32] = 32
    channels: int = 0

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        _ = graph.start  # several are refused
        arriving = Arriving.of(graph, hardware)
        operators = [op for op in needed(graph) if op is not arriving.pool]
        view = View.of(graph.tensors, (arriving.start.name,), operators, *graph.ends)
        best, found = self.proposed(view)
        ways = self.in_place(best, partial(able, graph, hardware)), found
        for found in ways:  # kernels that work in place have scratch
            chosen = lay([arriving, *found], Draft(graph, hardware, self.accumulator_bits))
            if not chosen.draft.most_scratch:
                break
        notes = (
            ("accumulate_layers", sum(len(loop.accumulated) for loop in loops(found))),
            ("accumulator_bits", self.accumulator_bits),
            ("loops", len(loops(found))),
            ("search_states", best.states),
        )
        return chosen.plan("partial", notes)

    def proposed(self, view: View) -> tuple[Best, Schedule]:
        """Return what the search found, and its schedule with the channels at once: over all
        orders; if those are too many, in the order that is best without loops; if even that is too
        much, without loops."""
        rules = Rules(view, self.accumulator_bits, self.channels or 1)
        best = search(rules, self.search, MOST_STATES)
        if best is None:
            rules = replace(rules, view=view.reordered(least_peak(view).tasks), given=True)
            best = search(rules, self.search, MOST_STATES)
        best = best or search(replace(rules, loops=False), self.search, len(view.names))
        assert best, "whole tensors in one order have a state each"
        return best, self._schedule(best.rules, best, best.peak)

    def in_place(self, best: Best, able: Able) -> Schedule:
        """``best`` or, within its peak, what rounds fewer sums because kernels that are ``able``
        work in place; in as few passes as the room that they leave allows."""
        peak, published, rules = best.peak, best.rules, replace(best.rules, able=able)
        if self.channels or self.search == "pex":
            return self._schedule(published, best, peak)
        fewest = search(rules, "exact", MOST_STATES, peak) if best.accumulated else None
        if fewest and fewest.accumulated < best.accumulated:
            best = fewest
        plain, roomy = (self._schedule(each, best, peak) for each in (published, rules))
        return [
            _widest(part, other, able)
            if isinstance(part, Channels) and isinstance(other, Channels)
            else other
            if best is fewest
            else part
            for part, other in zip(plain, roomy, strict=True)
        ]

    def _schedule(self, rules: Rules, best: Best, limit: int) -> Schedule:
        """Return regions: each loop with as many channels at once as keep it within ``limit``
        nibbles by ``rules`` (Pex, remark 4), unless it is said how many."""
        view, found = rules.view, list[Whole | Channels]()
        for n, step in enumerate(best.steps):
            move, state, context = step.move, step.state, step.context
            name, op = view.names[move.tensor], view.operators[move.tensor - 1]
            under = rules.over(move, state.full | state.part | context)
            over = "" if under is None else view.names[under]
            if move.rule == "full":
                found.append(Whole(op, over))
                continue
            if move.rule == "begin":  # with a slice, or with a layer that generates its channels
                channels = rules.channels[best.steps[n + 1].move.tensor]
                most = self.channels or channels
                found.append(Channels(f"channel{len(found)}", channels, most))
                continue
            loop = found[-1]
            assert isinstance(loop, Channels)
            full, part = rules.held(move, state, context, step.sums)
            if part and not self.channels:
                each = sum(rules.view.sizes[t] // rules.channels[t] for t in members(part))
                loop = replace(loop, at_once=min(loop.at_once, (limit - full) // each))
            if move.rule == "concatenate":
                loop = replace(loop, whole=(*loop.whole, name))
            elif move.rule != "slice":
                loop = replace(loop, passes=(*loop.passes, Pass(move.rule, op, over)))
            found[-1] = loop
        return found


def loops(found: Schedule) -> list[Channels]:
    return [region for region in found if isinstance(region, Channels)]


def able(graph: Graph, hardware: Hardware, op: Operator, at_once: int) -> bool:
    """See ``Rules``."""
    if not op.weighted or len(op.inputs) != 1:
        return False
    source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    channels = target.shape[-1]
    if (source.shape[-1], source.dtype, len(source.shape)) != (channels, target.dtype, 3):
        return False
    at_once = at_once or channels
    rings = (0, 0, at_once if at_once < channels else 0)
    parts = {
        each.name: replace(Part.packed((*each.shape[:-1], at_once), each.dtype.bits), rings=rings)
        for each in (source, target)
    }
    over = frozenset([source.name])
    return takes_place(Form(op, graph, parts, overlaps=over, in_place=True), hardware)


def _widest(part: Channels, other: Channels, able: Able) -> Channels:
    """``other`` with the most channels that its kernels take and sums are added evenly of, if more
    than ``part`` has; else ``part``, evenly."""
    return next(
        replace(loop, at_once=at_once)
        for loop, fewer in ((other, part.at_once), (part, 0))
        for at_once in _even(loop)
        if at_once > fewer and all(able(each.op, at_once) for each in loop.passes if each.over)
    )


def _even(loop: Channels) -> Iterator[int]:
    """Channels at once, the most first: of loops that add sums up, those alone that divide all,
    unless that more than doubles the passes."""
    numbers = range(loop.at_once, 0, -1)
    even = [n for n in numbers if loop.channels % n == 0 and 2 * n > loop.at_once]
    yield from (loop.accumulated and even) or numbers
