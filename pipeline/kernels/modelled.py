"""How long a step, and a plan, takes by what kernels declare: flash's waits and the tape's steps
included, caches of instructions not."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import cortex_m
from pipeline.kernels.choose import named
from pipeline.kernels.form import Form
from pipeline.kernels.kernel import Kernel
from pipeline.kernels.work import weight_bytes
from pipeline.plan.vocabulary import Compute, Loop, Plan, Step

STEP_CYCLES, ROW_CYCLES = 45.0, 11.0
"""Of a step of the tape, and of each row that it names, on a Cortex-M4
(``python -m tests.codegen.bench_tape``)."""


def cycles_of_step(kernel: Kernel, form: Form, hardware: Hardware) -> float:
    """Of ``form`` by ``kernel``, what calls it and what its weights wait for included."""
    rows = sum(part.extents[0] for part in form.parts.values() if part.spread in ("rows", "blocks"))
    called = STEP_CYCLES + ROW_CYCLES * rows if rows else 0.0
    return kernel.cycles(form) + called + _waits(kernel, form, hardware)


def _waits(kernel: Kernel, form: Form, hardware: Hardware) -> float:
    """For weights in flash, each time they are read; once where the cache holds them. A kernel
    that says in its cycles what others wait for is given that back."""
    if not cortex_m.has_dsp(hardware):
        return 0.0
    flash, passes = cortex_m.slow_flash(hardware), kernel.weight_passes(form)
    size = weight_bytes(form)
    return flash.byte_cycles * size * (passes if size > flash.cached_bytes // 2 else 1.0)


def modelled_cycles(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """Of one run of ``plan``; infinitely many where a step has no kernel, so that there is no C.
    What moves, or waits for a card, takes no cycles here."""
    known: dict[tuple[object, ...], float] = {}

    def of(steps: Iterable[Step]) -> float:
        total = 0.0
        for step in steps:
            if isinstance(step, Loop):
                total += step.count * of(step.body)
            elif isinstance(step, Compute):
                total += one(step)
        return total

    def one(step: Compute) -> float:
        if not step.kernel:
            return inf
        form = Form.of(step, plan.buffer, graph)
        edges = getattr(form.op, "padding", ())  # of a tile its own
        key = step.op, edges, step.kernel, step.partial, *form.parts.items()
        if key not in known:
            known[key] = cycles_of_step(named(step.kernel, form, hardware), form, hardware)
        return known[key]

    return sum(of(track.steps) for track in plan.tracks)
