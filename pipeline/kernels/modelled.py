"""How long a plan takes by what kernels declare: flash's waits and the tape's steps included."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels.choose import named
from pipeline.kernels.form import Form
from pipeline.kernels.waits import cycles_of_step
from pipeline.plan.vocabulary import Compute, Loop, Plan, Step


def modelled_cycles(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """Of one run of ``plan``; infinitely many where a step has no kernel, so that there is no C.
    What moves, or waits for a card, takes no cycles here."""
    return sum(cycles_by_operator(plan, graph, hardware).values())


def cycles_by_operator(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, float]:
    """The same, of each operator's steps, by its name."""
    known: dict[tuple[object, ...], float] = {}
    found: dict[str, float] = {}

    def add(steps: Iterable[Step], times: int) -> None:
        for step in steps:
            if isinstance(step, Loop):
                add(step.body, times * step.count)
            elif isinstance(step, Compute):
                found[step.op] = found.get(step.op, 0.0) + times * one(step)

    def one(step: Compute) -> float:
        if not step.kernel:
            return inf
        form = Form.of(step, plan.buffer, graph)
        edges = getattr(form.op, "padding", ())  # of a tile its own
        key = step.op, edges, step.kernel, step.partial, *form.parts.items()
        if key not in known:
            known[key] = cycles_of_step(named(step.kernel, form, hardware), form, hardware)
        return known[key]

    for track in plan.tracks:
        add(track.steps, 1)
    return found
