"""Places from which an inference goes on where the card has lost something, instead of from its
input (docs/decisions/0021).

A place is an operator. Everything that operators before it made and others read comes from the card
there, so both tracks can run anew, of whose steps those for operators before it are left out; waits
and signals stay. That is a plan of its own, of a graph whose inputs lie on the card (``onward``),
and is proved as one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from pipeline.errors import PlanError
from pipeline.graph.graph import Graph
from pipeline.plan.steps import Clear, Compute, Finish, Loop, Move, Step, touched, written
from pipeline.plan.unrolled import repeated, unroll
from pipeline.plan.vocabulary import Plan

REPAIR = "repair"
"""A plan's note: the places, as numbers of operators in the graph's order."""


@dataclass(frozen=True)
class Repair:
    """
    Attributes:
        places: numbers of operators, ascending; a *part* is what operators between two make, the
            first from the input on.
    """

    plan: Plan
    graph: Graph
    places: tuple[int, ...] = ()

    @classmethod
    def noted(cls, plan: Plan, graph: Graph) -> Repair:
        """
        Raises:
            PlanError: where the note says no places of the graph.
        """
        words = str(dict(plan.notes).get(REPAIR, "")).split()
        places = tuple(int(word) if word.isdecimal() else 0 for word in words)
        bounds = (0, *places, len(graph.operators))
        if places and any(first >= second for first, second in pairwise(bounds)):
            raise PlanError(f"the plan's note {REPAIR} is damaged: it should have places, in order")
        return cls(plan, graph, places)

    @cached_property
    def maker(self) -> dict[str, int]:
        """The number of the operator that makes each tensor."""
        return {op.output: number for number, op in enumerate(self.graph.operators)}

    @cached_property
    def readers(self) -> dict[str, int]:
        """The number of the last operator that reads each tensor."""
        found = dict[str, int]()
        for number, op in enumerate(self.graph.operators):
            found |= dict.fromkeys((*op.inputs, *op.parameters), number)
        return found

    def operator(self, step: Step) -> int:
        """Return the number of the operator that a step is for: whose output it makes or stores, or
        the last that reads what it loads."""
        if isinstance(step, Compute | Clear | Finish):
            return self.maker[self.graph.operator(step.op).output]
        assert isinstance(step, Move)
        tensor = self.plan.buffer[step.src.buffer].tensor
        return self.maker[tensor] if self._stores(step) else self.readers[tensor]

    def part(self, number: int) -> int:
        """Return the part of operator ``number``."""
        return bisect_right(self.places, number)

    def crossing(self, place: int) -> list[str]:
        """Find what is made before a place, or arrives, and is read from there on."""
        read = dict.fromkeys(n for op in self.graph.operators[place:] for n in op.inputs)
        return [name for name in read if self.maker.get(name, -1) < place]

    def onward(self, place: int) -> tuple[Plan, Graph]:
        """Make a plan of what runs from a place on, of a graph that begins there."""
        plan, graph = self.plan, self.graph
        operators, inputs = graph.operators[place:], tuple(self.crossing(place))
        used = {name for op in operators for name in (*op.inputs, *op.parameters)}
        constants = {name: v for name, v in graph.constants.items() if name in used}
        rest = replace(graph, operators=operators, constants=constants, inputs=inputs)

        def kept(step: Step) -> bool:
            working = isinstance(step, Compute | Clear | Finish | Move)
            return not working or self.operator(step) >= place

        tracks = tuple(replace(t, steps=tuple(_only(t.steps, kept))) for t in plan.tracks)
        names = set(plan.outputs) | _resident(plan, {*inputs, *constants})
        steps = [step for track in tracks for step, _ in repeated(track.steps)]
        names |= {piece.buffer for step in steps for piece in touched(step)}
        names |= {n for step in steps if isinstance(step, Compute) for n in step.scratch}
        buffers = tuple(b for b in plan.buffers if b.name in names)
        resident = tuple(
            b.name for b in buffers if b.name in _resident(plan, {*inputs, *constants})
        )
        return replace(plan, buffers=buffers, tracks=tracks, resident=resident, notes=()), rest

    @cached_property
    def stores_in_order(self) -> bool:
        """Whether the card's track stores what operators make one after the other: then the first
        byte of one says that all before are there."""
        tracks = (unroll(track.steps, {}) for track in self.plan.tracks)
        stores = [
            [self.operator(s) for s, _ in steps if isinstance(s, Move) and self._stores(s)]
            for steps in tracks
        ]
        each = [numbers for numbers in stores if numbers]
        return len(each) < 2 and all(numbers == sorted(numbers) for numbers in each)

    def _stores(self, step: Move) -> bool:
        return step.dst.buffer in self.plan.on_card

    def possible(self) -> Iterator[int]:
        """Yield all places: what crosses them comes from the card, whoever reads it."""
        loaded, made = set[str](), set[str]()
        reading = [set[str]() for _ in self.graph.operators]
        for step, _ in repeated(step for track in self.plan.tracks for step in track.steps):
            if isinstance(step, Move):
                loaded |= set() if self._stores(step) else {step.dst.buffer}
            elif (target := written(step)) is not None:
                made.add(target.buffer)
                reading[self.operator(step)] |= {piece.buffer for piece in touched(step)}
        for place in range(1, len(self.graph.operators) if self.stores_in_order else 0):
            crossing = {*self.crossing(place)}
            ahead = {name for names in reading[place:] for name in names}
            needed = {name for name in ahead if self.plan.buffer[name].tensor in crossing}
            if needed <= loaded - made and self.maker[self.graph.output] >= place:
                yield place


def _only(steps: Sequence[Step], kept: Callable[[Step], bool]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Loop):
            if body := tuple(_only(step.body, kept)):
                yield replace(step, body=body)
        elif kept(step):
            yield step


def _resident(plan: Plan, tensors: set[str]) -> set[str]:
    """Names of the buffers that hold ``tensors`` before the first step: constants where they are,
    activations on the card."""
    there = {*plan.resident, *plan.on_card}
    return {name for name in there if plan.buffer[name].tensor in tensors}
