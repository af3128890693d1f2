"""Time that a plan takes by what kernels declare: all work of the core, flash's waits, the tape's
steps and the feeding of the input included."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.kernels.choose import declares, named
from pipeline.kernels.feeding import feeding_cycles, feeds, moving_cycles
from pipeline.kernels.form import Form
from pipeline.kernels.waits import cycles_of_step
from pipeline.plan.forms import forms
from pipeline.plan.maps import Table
from pipeline.plan.unrolled import repeated
from pipeline.plan.vocabulary import Compute, Plan

Shares = Mapping[str, float]
"""The share of a tensor's elements that are 0, by its name."""


def modelled(
    plan: Plan, graph: Graph, hardware: Hardware, zeros: Shares | None = None
) -> dict[str, Any]:
    """``modelled_us``: all work of the core for an inference, as a run's ``compute_us`` counts it;
    ``modelled_by``: ``kernels``, or ``cycles_per_mac`` where there are none, or their cycles are of
    no core that is known. What a card takes is not in it."""
    cycles = sum(cycles_by_operator(plan, graph, hardware, zeros).values())
    by = "kernels" if declares(hardware) and cycles < inf else "cycles_per_mac"
    if by == "kernels":
        cycles += feeding_cycles(plan, graph, hardware) + moving_cycles(plan, hardware)
    else:
        cycles = graph.macs * hardware.cycles_per_mac
    return {"modelled_us": round(cycles / hardware.clock_hz * 1e6, 1), "modelled_by": by}


def modelled_cycles(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """Add up the cycles of the kernels of one run of ``plan``, by which plans of one network are
    compared; infinitely many where a step has no kernel, so that there is no C."""
    return sum(cycles_by_operator(plan, graph, hardware).values())


def cycles_by_operator(
    plan: Plan, graph: Graph, hardware: Hardware, zeros: Shares | None = None
) -> dict[str, float]:
    """Return the same, of each operator's steps, by its name; those that are part of the feeding
    take none. Without ``zeros`` no activation is 0."""
    known: dict[tuple[object, ...], float] = {}
    found: dict[str, float] = {}
    scattered = {b.tensor: b.scattered_pixels for b in plan.buffers if isinstance(b.map, Table)}

    def one(step: Compute) -> float:
        if not step.kernel:
            return inf
        if feeds(step, plan):
            return 0.0
        form = Form.of(step, plan.buffer, graph)
        edges = getattr(form.op, "padding", ())  # of a tile its own
        key = step.op, edges, step.kernel, step.partial, *form.parts.items()
        if key not in known:
            form = replace(form, zeros=zeros or {}, scattered_pixels=scattered)
            known[key] = cycles_of_step(named(step.kernel, form, hardware), form, hardware)
        return known[key]

    for step, times in repeated(step for track in plan.tracks for step in track.steps):
        if isinstance(step, Compute):
            found[step.op] = found.get(step.op, 0.0) + times * one(step)
    return found


def formed(plan: Plan, graph: Graph, hardware: Hardware) -> list[dict[str, Any]]:
    """Describe how the plan runs each operator; with ``modelled_cycles`` where kernels' models are
    of the core and no card is used."""
    known = declares(hardware) and not plan.on_card
    cycles = cycles_by_operator(plan, graph, hardware) if known else {}
    timed = {name: {"modelled_cycles": round(each)} for name, each in cycles.items() if each < inf}
    return [form.content() | timed.get(name, {}) for name, form in forms(plan).items()]


def skips(plan: Plan, graph: Graph, hardware: Hardware) -> bool:
    """Check whether an activation of 0 makes any of its kernels faster."""
    every = repeated(step for track in plan.tracks for step in track.steps)
    steps = (step for step, _ in every if isinstance(step, Compute) and step.kernel)
    forms = {step.op: (step.kernel, Form.of(step, plan.buffer, graph)) for step in steps}
    return any(named(name, form, hardware).skips for name, form in forms.values())


def zero_shares(graph: Graph, frames: Iterable[IntArray]) -> Shares:
    """Return the shares of what ``frames`` (*input shape) become in ``graph``."""
    values = graph.run(np.stack(list(frames)))
    return {
        name: float((each == graph.tensors[name].zero_point).mean())
        for name, each in values.items()
        if name in graph.tensors
    }
