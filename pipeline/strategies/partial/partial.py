"""Partial execution along channels (Liberis & Lane, "Pex", 2023): no operator runs twice, and what
would be the largest tensors never exist whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import Form, scratch_bytes
from pipeline.plan.vocabulary import Plan, Track
from pipeline.strategies.base import Strategy
from pipeline.strategies.constants import constants
from pipeline.strategies.order import least_peak
from pipeline.strategies.ordinary import needed, room
from pipeline.strategies.partial.channels import at_most, widest
from pipeline.strategies.partial.emit import Emitter
from pipeline.strategies.partial.layout import Layout, lay_out
from pipeline.strategies.partial.lives import lives
from pipeline.strategies.partial.network import Network
from pipeline.strategies.partial.replay import peak, replay
from pipeline.strategies.partial.rules import Rules
from pipeline.strategies.partial.schedule import Schedule, loops, schedule
from pipeline.strategies.partial.search import Best, Search, TooManyStates, search
from pipeline.strategies.prologue import Prologue

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
    search: Search = "exact"
    accumulator_bits: Literal[8, 16, 32] = 32
    channels: int = 0

    def __post_init__(self) -> None:
        for key, value, allowed in (
            ("search", self.search, ("pex", "exact")),
            ("accumulator_bits", self.accumulator_bits, (8, 16, 32)),
        ):
            if value not in allowed:
                choices = ", ".join(map(str, allowed[:-1])) + f" or {allowed[-1]}"
                raise ThimbleError(f"strategy.{key}={value}: it has to be {choices}")
        if not isinstance(self.channels, int) or self.channels < 0:
            raise ThimbleError(
                f"strategy.channels={self.channels}: how many channels a loop computes at once, or "
                "0 for as many as don't raise the peak"
            )

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        prologue = Prologue.of(graph, hardware)
        operators = [op for op in needed(graph) if op is not prologue.pool]
        best, found = self.scheduled(graph, prologue.start.name, operators)
        makers = {op.output: op for op in operators}

        def placed(plan: Schedule, fast: bool = True) -> Layout:
            pieces = lives(
                plan,
                graph,
                prologue.start.name,
                makers,
                lambda name, *step: self.scratch(makers[name], graph, hardware, *step) * fast,
            )
            return lay_out(pieces, graph, hardware, self.accumulator_bits, prologue.sum_nibbles)

        chosen, layout = _narrowed(found, placed)
        if layout.cells > room(graph, hardware):  # slower kernels need no scratch
            chosen, layout = _narrowed(found, partial(placed, fast=False))
        found = chosen
        arriving = prologue.buffers(layout.extra)
        fixed = constants(graph, hardware, layout.cells)
        held = layout.buffers
        start = held[prologue.start.name]
        every = {buffer.name: buffer for buffer in (*held.values(), *fixed)}
        steps = Emitter(graph, every, makers).steps(found)
        frame = arriving[0] if arriving else start
        return Plan(
            graph.name,
            self.name,
            (*hardware.memories, *prologue.memories),
            (*arriving, *held.values(), *fixed),
            (Track("cpu", (*prologue.steps(arriving, start), *steps)),),
            (frame.name, *(buffer.name for buffer in fixed)),
            graph.output,
            notes=(
                ("accumulate_layers", best.accumulated),
                ("accumulator_bits", self.accumulator_bits),
                ("loops", sum(1 for _ in loops(found))),
                ("search_states", best.states),
            ),
        )

    def scheduled(
        self, graph: Graph, start: str, operators: Sequence[Operator]
    ) -> tuple[Best, Schedule]:
        """What the search found, and the schedule with its channels at once, replayed."""
        network, best = self.best(Network.of(graph, start, operators, self.accumulator_bits))
        found = schedule(network, best.moves, self.channels or 1)
        loads = replay(found, graph, start, operators, self.accumulator_bits)
        if (held := max(peak(found, loads), network.sizes[0])) != best.peak:
            raise ThimbleError(
                f"strategy=partial planned {best.peak / 2:g} B for {graph.name}, but its schedule "
                f"holds {held / 2:g} B: please report it"
            )
        return best, found if self.channels else widest(found, loads, best.peak)

    def best(self, network: Network) -> tuple[Network, Best]:
        """Over all orders; where those are too many, in the order that is best without loops; where
        even that is too much, without loops."""
        at_once = self.channels or 1
        try:
            return network, search(Rules(network, at_once), self.search, MOST_STATES)
        except TooManyStates:
            network = network.reordered(least_peak(network.work).tasks)
        try:
            rules = Rules(network, at_once, "given")
            return network, search(rules, self.search, MOST_STATES)
        except TooManyStates:
            return network, search(Rules(network, at_once, "whole"), "pex", MOST_STATES)

    def scratch(
        self, op: Operator, graph: Graph, hardware: Hardware, rule: str, at_once: int
    ) -> int:
        """Bytes; see ``lives``."""
        form = Form.whole(op, graph)
        if rule == "accumulate":
            form = form.adding(at_once, self.accumulator_bits)
        elif rule:
            form = form.with_channels(at_once)
        return scratch_bytes(form, hardware)


def _narrowed(plan: Schedule, placed: Callable[[Schedule], Layout]) -> tuple[Schedule, Layout]:
    """With fewer channels at once where that makes the arena smaller: what is held at once may
    fit the peak and still not pack into it."""
    layout = placed(plan)
    channels = max((loop.at_once for loop in loops(plan)), default=1)
    while layout.cells > layout.bound and channels > 1:
        channels //= 2
        fewer = at_most(plan, channels)
        other = placed(fewer)
        if other.cells < layout.cells:
            plan, layout = fewer, other
    return plan, layout
