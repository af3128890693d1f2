"""Propose loops over channels (Liberis & Lane, "Pex", 2023): no operator runs twice, and what would
be the largest tensors never exist whole.

Beyond the published rules, channels are written over those that they are made of, where kernels of
the core can, so that more of them pass through a loop at once, and fewer sums are rounded, within
the peak of those rules.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, takes_place
from pipeline.plan.maps import packed
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.channels import Channels, Pass
from pipeline.schedules.lower import lay, needed
from pipeline.schedules.whole import Whole
from pipeline.search.channels.replay import Replay, Schedule
from pipeline.search.channels.search import START, Best, Move, Rules, Search, search
from pipeline.search.order import least_peak
from pipeline.search.view.whole import AT_END, View

MOST_STATES = 10_000


@dataclass(frozen=True)
class ByChannels:
    """
    Attributes:
        search: ``pex`` is Algorithm 1 as published; ``exact`` finds the least peak of all
            sequences of its rules, and with it the fewest accumulating layers.
        accumulator_bits: of an element of a tensor that is accumulated in a loop.
        channels: computed at once in every loop; 0: in each as many as don't raise the peak.
    """

    search: Search = "exact"
    accumulator_bits: int = 32
    channels: int = 0

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        arriving = Arriving.of(graph, hardware)
        operators = [op for op in needed(graph) if op is not arriving.pool]
        view = View.of(graph.tensors, arriving.start.name, operators, graph.output)
        best, found = self.proposed(view)
        ways = self.in_place(view, found, best.peak, Places(graph, hardware)), found
        for found in ways:  # kernels that work in place have scratch
            regions, bits = [arriving, *found], self.accumulator_bits
            chosen = lay(regions, graph, hardware, accumulator_bits=bits)
            if not chosen.draft.most_scratch:
                break
        notes = (
            ("accumulate_layers", len(accumulated(found))),
            ("accumulator_bits", self.accumulator_bits),
            ("loops", len(loops(found))),
            ("search_states", best.states),
        )
        return chosen.plan("partial", notes)

    def proposed(self, view: View) -> tuple[Best, Schedule]:
        """What the search found, and the schedule with its channels at once."""
        ordered, best = self._best(view)
        found = schedule(ordered, best.moves, self.channels or 1)
        replay = Replay(view, self.accumulator_bits)
        return best, found if self.channels else replay.widest(found, best.peak)

    def in_place(self, view: View, found: Schedule, peak: int, places: "Places") -> Schedule:
        """``found``, or the schedule within ``peak`` nibbles that rounds fewer sums because kernels
        of the board work in place, which the published rules know of sums alone."""
        if self.channels or self.search == "pex":
            return found
        wide = partial(Replay(view, self.accumulator_bits).widest, limit=peak)
        rules = Rules(view.in_place(places.able), self.accumulator_bits)
        sums = len(accumulated(found))
        fewest = search(rules, "exact", MOST_STATES, peak) if sums else None
        if fewest and fewest.accumulated < sums:
            found = wide(schedule(rules.view, fewest.moves, 1))
        return places.wider(found, wide)

    def _best(self, view: View) -> tuple[View, Best]:
        """Over all orders; where those are too many, in the order that is best without loops; where
        even that is too much, without loops."""
        rules = Rules(view, self.accumulator_bits, self.channels or 1)
        if best := search(rules, self.search, MOST_STATES):
            return view, best
        view = view.reordered(least_peak(view).tasks)
        if best := search(replace(rules, view=view, given=True), self.search, MOST_STATES):
            return view, best
        moves = tuple(Move("full", tensor, START) for tensor in range(1, len(view.names)))
        return view, Best(view.peak(range(len(moves))), 0, moves, len(moves) + 1)


def schedule(view: View, moves: Sequence[Move], at_once: int) -> Schedule:
    """``moves`` as regions: an operator alone takes the place of an input that dies there."""
    found, last = list[Whole | Channels](), dict[str, int]()
    for n, move in enumerate(moves):
        if move.rule in ("full", "continue", "generate", "accumulate"):
            last |= dict.fromkeys(view.operators[move.tensor - 1].inputs, n)
    last |= {view.names[each]: AT_END for each in view.kept}
    for n, move in enumerate(moves):
        name, op = view.names[move.tensor], view.operators[move.tensor - 1]
        if move.rule == "full":
            over = (view.names[each] for each in view.tasks[move.tensor - 1].over)
            found.append(Whole(op, next((each for each in over if last[each] == n), "")))
            continue
        if move.rule == "begin":  # with a slice, or with a layer that generates its channels
            channels = view.tensors[view.names[moves[n + 1].tensor]].shape[-1]
            found.append(Channels(f"channel{len(found)}", channels, at_once))
            continue
        loop = found[-1]
        assert isinstance(loop, Channels)
        if move.rule == "concatenate":
            found[-1] = replace(loop, whole=(*loop.whole, name))
        elif move.rule != "slice":
            found[-1] = replace(loop, passes=(*loop.passes, Pass(move.rule, op)))
    return found


def loops(found: Schedule) -> list[Channels]:
    return [region for region in found if isinstance(region, Channels)]


def accumulated(found: Schedule) -> list[str]:
    """Tensors that are accumulated in loops."""
    return [name for loop in loops(found) for name in loop.accumulated]


@dataclass(frozen=True)
class Places:
    """``able``: whether a kernel computes some channels of an operator so; none: all of them."""

    graph: Graph
    hardware: Hardware

    def able(self, op: Operator, at_once: int = 0) -> bool:
        tensors = self.graph.tensors
        if not op.weighted or len(op.inputs) != 1:
            return False
        source, target = tensors[op.inputs[0]], tensors[op.output]
        channels = target.shape[-1]
        alike = (source.shape[-1], source.dtype, len(source.shape)) == (channels, target.dtype, 3)
        if not alike:
            return False
        parts = {each.name: _part(each, at_once or channels) for each in (source, target)}
        over = frozenset([source.name])
        form = Form(op, self.graph, parts, overlaps=over, in_place=True)
        return takes_place(form, self.hardware)

    def wider(self, schedule: Schedule, widest: Callable[[Schedule], Schedule]) -> Schedule:
        """Each loop in as few passes as its room allows, what a kernel can in another's place.

        Args:
            schedule: with as many channels at once as fit where nothing takes another's place.
            widest: the same of any schedule.
        """
        roomy = widest([_over(n) if isinstance(n, Channels) else n for n in schedule])
        return [
            next(self._ways(part, other), part)
            if isinstance(part, Channels) and isinstance(other, Channels)
            else part
            for part, other in zip(schedule, roomy, strict=True)
        ]

    def _ways(self, part: Channels, other: Channels) -> Iterator[Channels]:
        """``other`` with the most channels that its kernels take and sums are added evenly of, more
        than ``part`` has; then ``part``, evenly."""
        ops = [each.op for each in other.passes if each.over]
        for at_once in _even(other):
            if at_once > part.at_once and all(self.able(op, at_once) for op in ops):
                yield replace(other, at_once=at_once)
        for at_once in _even(part):
            yield replace(part, at_once=at_once)


def _part(tensor: Tensor, at_once: int) -> Part:
    """All pixels of so many channels, in a ring."""
    sizes, bits = (*tensor.shape[:-1], at_once), tensor.dtype.bits
    ring = at_once if at_once < tensor.shape[-1] else 0
    return Part(sizes, packed(sizes, bits).strides, bits, rings=(0, 0, ring))


def _over(loop: Channels) -> Channels:
    """``loop`` with everything that continues one ring, read by nothing else, in its place."""
    rings = {p.op.output for p in loop.passes if p.rule != "accumulate"} - {*loop.whole}
    reads = [name for op in loop.operators for name in op.inputs]

    def one(each: Pass) -> Pass:
        source = each.op.inputs[0]
        able = each.rule == "continue" and each.op.output in rings
        single = source in rings and reads.count(source) == 1
        return replace(each, over=source) if able and single else each

    return replace(loop, passes=tuple(map(one, loop.passes)))


def _even(loop: Channels) -> Iterator[int]:
    """Channels at once, the most first: of loops that add sums up, those alone that divide all,
    unless that more than doubles the passes."""
    numbers = range(loop.at_once, 0, -1)
    even = [n for n in numbers if loop.channels % n == 0 and 2 * n > loop.at_once]
    yield from (loop.accumulated and even) or numbers
