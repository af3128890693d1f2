"""Chooses the places from which an inference is repaired: where that saves enough of it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.pieces import transferred
from pipeline.plan.repair import REPAIR, Repair
from pipeline.plan.vocabulary import Plan
from pipeline.timing.simulate import simulate

LEAST_SAVED = 0.1
"""Least share of an inference for which it is repaired from a layer."""
ENOUGH = 0.9
"""Share of what all places save with which the fewest are taken: each is proved, and asked for."""


@dataclass(frozen=True)
class Saving:
    """Compute what places save of an inference.

    Attributes:
        read: bytes of maps that the card reads, without the input, by the operator that makes them.
        passed: the share of an inference that has passed when all before each operator are done.
    """

    graph: Graph
    read: Counter[int] = field(default_factory=Counter)
    passed: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, plan: Plan, graph: Graph, hardware: Hardware) -> Saving:
        found, repair = cls(graph), Repair(plan, graph)
        for name, loads, run in transferred(plan):
            if loads and (maker := repair.maker.get(plan.buffer[name].tensor)) is not None:
                found.read[maker] += run[1] - run[0]
        line, numbers = simulate(plan, graph, hardware), range(len(graph.operators))
        order = {op.name: number for number, op in enumerate(graph.operators)}
        makes = [order[t.op] if t.kind == "compute" else len(order) for t in line.tasks]
        number = np.array(makes, dtype=np.int64)[line.task]
        ends = (line.stop[number < place].max(initial=0.0) for place in numbers)
        found.passed.extend(float(end / line.makespan_us) for end in ends)
        return found

    def by(self, places: Sequence[int]) -> float:
        """The share that isn't made again of an inference that loses a map, on average over the
        bytes that are read: it goes on from the last of ``places`` before what makes the map."""
        first = [0, *places]
        shares = (
            size * self.passed[first[bisect_right(places, maker)]]
            for maker, size in self.read.items()
        )
        return sum(shares) / (sum(self.read.values()) or 1)


def with_places(plan: Plan, graph: Graph, hardware: Hardware) -> Plan:
    """``plan`` with a note of the places from which what the card loses is made again; without one
    where nothing on the card has a tag, and where ``LEAST_SAVED`` is not saved."""
    if not hardware.card.sealed or plan.frames > 1 or not plan.on_card:
        return plan
    possible = list(Repair(plan, graph).possible())
    saving, places = Saving.of(plan, graph, hardware), list[int]()
    most = saving.by(possible)
    if most < LEAST_SAVED:
        return plan
    while saving.by(places) < ENOUGH * most:
        more = (sorted({*places, place}) for place in possible)
        places = max(more, key=saving.by)
    noted = (REPAIR, " ".join(map(str, places)))
    return replace(plan, notes=(*plan.notes, noted))
