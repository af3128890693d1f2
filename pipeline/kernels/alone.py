"""Time that an operator takes by itself, where a plan moves its weights from a card to a window of
memory: what plans with a card are timed with."""

from collections import Counter
from dataclasses import replace
from math import inf, prod

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import cortex_m, thumb
from pipeline.kernels.choose import choose
from pipeline.kernels.form import Form, Part
from pipeline.kernels.modelled import cycles_by_operator
from pipeline.plan.rates import ALONE_US, note_us
from pipeline.plan.unrolled import repeated
from pipeline.plan.vocabulary import Compute, Plan


def alone_us(graph: Graph, hardware: Hardware, windows: bool = True) -> dict[str, float]:
    """Microseconds of each operator's whole output, by the cycles that its kernel declares, which
    were fitted to simulated layers; scratch it has none. In the setting of the paper, and of a core
    whose kernels declare none, there is no entry: ``hardware.cycles_per_mac`` says it.

    Args:
        windows: of memory have the weights; else flash has.
    """
    declares = cortex_m.has_dsp(hardware) or thumb.has_thumb(hardware)
    if hardware.card.timing == "paper" or not declares:
        return {}
    found = dict[str, float]()
    for op in graph.operators:
        form = _form(op, graph) if windows else Form.whole(op, graph)
        try:
            kernel = choose(form, hardware, scratch=False)
        except ThimbleError:  # nobody computes it
            continue
        found[op.name] = round(kernel.cycles(form) / hardware.clock_hz * 1e6, 3)
    return found


def timed(plan: Plan, graph: Graph, hardware: Hardware) -> Plan:
    """``plan`` with a note of how long each operator takes in its steps, where there are times of
    them by themselves: as many tiles as it has, an odd channel of a pair, and flash's waits; never
    less than by itself, which bounds assume. ``alone_us``: of all by themselves."""
    alone = alone_us(graph, hardware)
    every = cycles_by_operator(plan, graph, hardware) if alone else {}
    parts = _parts(plan, graph)
    taken = {name: cycles * parts[name] for name, cycles in every.items() if cycles < inf}
    us = {
        name: max(least, taken.get(name, 0.0) / plan.frames / hardware.clock_hz * 1e6)
        for name, least in alone.items()
    }
    whole = ((ALONE_US, f"{sum(alone.values()):.3f}"),) if len(us) == len(graph.operators) else ()
    return replace(plan, notes=(*plan.notes, *note_us(us, graph), *whole))


def _parts(plan: Plan, graph: Graph) -> dict[str, float]:
    """Return, of what an operator's steps name, the share that one making of its output is: who
    times steps counts the elements that they make, and tiles at a tensor's end are cut off. 1 for
    sums that are kept between steps, whose time is shared out."""
    named = Counter[str]()
    partial = set[str]()
    for step, times in repeated(step for track in plan.tracks for step in track.steps):
        if isinstance(step, Compute):
            named[step.op] += times * prod(step.out.size)
            partial |= {step.op} if step.partial else set()
    made = {op.name: plan.frames * graph.tensors[op.output].size for op in graph.operators}
    return {n: 1.0 if n in partial else min(1.0, made[n] / each) for n, each in named.items()}


def _form(op: Operator, graph: Graph) -> Form:
    """Return all of the output at once, weights in the order that the tensor has."""
    form = Form.whole(op, graph)
    if not op.weighted:
        return form
    weights = graph.tensors[op.parameters[0]]
    held = Part.packed(weights.shape, weights.dtype.bits)
    return Form(op, graph, {**form.parts, weights.name: held})
