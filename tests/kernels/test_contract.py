"""What every kernel keeps to, over random layers: who accepts a form is written for it, with the
scratch that it asked for and no less; and what is declared and what is written are the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.cortex_m import operators as cortex_m_writers
from pipeline.codegen.int8 import operators as int8_writers
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, Kernel, cortex_m, named, offers
from pipeline.kernels.cortex_m.by_row.base import RowKernel
from pipeline.kernels.cortex_m.gathered import Gathered
from pipeline.kernels.int8 import LookedUpAdd, word
from pipeline.plan.cost import cost
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Loop, Plan, Step
from pipeline.strategies.joint import Joint
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.support import core
from tests.contracts.test_operators import EVERY, drawn
from tests.graphs import Net
from tests.kernels.layers import plan_by, step_of
from tests.strategies.proving import as_c
from tests.tiers import quick

FAST = cortex_m.kernels("cortex-m4")

Case = tuple[Graph, int, int]
"""A layer, and the channels that a pass makes or adds; 0: all at once."""


def cases(kind: str, seed: int) -> Iterator[Case]:
    graph = KINDS[kind](np.random.default_rng(seed))
    op = graph.operators[-1]
    yield graph, 0, 0
    if kind in ("dense", "sum", "gate") or op.name == "image":
        return
    channels = graph.tensors[op.output].shape[-1]
    for at_once in {1, 2, 4, max(1, channels // 2)} - {channels}:
        yield graph, at_once, 0
    depth = graph.tensors[op.inputs[0]].shape[-1]
    if op.weighted and op.mixes_channels(graph.tensors):
        for adding in {1, 2, depth}:
            yield graph, 0, adding


def offered(case: Case) -> list[tuple[Kernel, Form, Plan]]:
    graph, at_once, adding = case
    portable = f"int8.{word(graph.operators[-1])}"
    plan = plan_by(portable, graph, core(), at_once, adding)
    form = Form.of(step_of(plan), plan.buffer, graph)
    return [
        (kernel, form, plan_by(kernel.name, graph, core(), at_once, adding))
        for kernel in offers(form, core())
    ]


def test_what_is_declared_is_written() -> None:
    of_windows = cortex_m.ordered("cortex-m4")
    assert {kernel.name for kernel in (*FAST, *of_windows)} == set(cortex_m_writers.WRITERS)
    words = {word(drawn(kind, 0)[0][0]) for kind in EVERY}
    assert {*(f"int8.{each}" for each in words), LookedUpAdd().name} == set(int8_writers.writers())


@pytest.mark.parametrize(
    ("kind", "seed"), quick(3, [(kind, n) for n in range(8) for kind in KINDS], ci=13)
)
def test_who_accepts_is_written_for_and_who_overlaps_takes_forms_that_do(
    kind: str, seed: int
) -> None:
    for case in cases(kind, seed):
        for kernel, form, plan in offered(case):
            verify(plan, case[0])
            files = generate(case[0], plan, core(), {})
            used = re.search(r"\*(restrict )?scratch\b", files["model.c"])
            assert used or not kernel.scratch_bytes(form), kernel.name
            assert kernel.cycles(form) > 0
            for name in form.op.inputs:
                if (gap := kernel.overlap(form, name)) is not None:
                    over = replace(form, overlaps=frozenset({name}))
                    assert kernel.accepts(over), kernel.name
                    assert gap.forwards <= 2 * form.graph.tensors[name].size


@pytest.mark.parametrize("kind", quick(("dense", "depthwise", "pool"), KINDS))
def test_who_does_not_accept_is_refused(kind: str) -> None:
    refused = set()
    for seed in range(2):
        for case in cases(kind, seed):
            _, form, plan = offered(case)[-1]
            for kernel in (each for each in FAST if not each.asked):
                if why := kernel.why_not(form):
                    step = step_of(plan)
                    changed = _with_step(plan, kernel.name)
                    with pytest.raises(ThimbleError, match=f"{step.op}: .*{kernel.name}") as error:
                        generate(case[0], changed, core(), {})
                    assert "\n" not in str(error.value) and why in str(error.value)
                    refused.add(kernel.name)
    assert len(refused) > 5


def _with_step(plan: Plan, kernel: str) -> Plan:
    """The same plan, its last step by another kernel."""

    def changed(step: Step) -> Step:
        if isinstance(step, Loop):
            return replace(step, body=tuple(map(changed, step.body)))
        return replace(step, kernel=kernel) if step is step_of(plan) else step

    track = plan.tracks[0]
    return replace(plan, tracks=(replace(track, steps=tuple(map(changed, track.steps))),))


SCRATCH = {
    "cortex_m.accumulate": ("conv2d", 0, 1),
    "cortex_m.conv2d": ("conv2d", 0, 0),
    "cortex_m.dense": ("dense", 0, 0),
    "cortex_m.depthwise": ("depthwise", 0, 0),
    "cortex_m.strips": ("pointwise", 1, 0),
}


def having(name: str) -> Iterator[tuple[Case, Plan]]:
    kind, at_once, adding = SCRATCH[name]
    for seed in range(40):
        case = KINDS[kind](np.random.default_rng(seed)), at_once, adding
        for kernel, _, plan in offered(case):
            if kernel.name == name:
                yield case, plan


def test_who_needs_scratch_is_listed() -> None:
    graph = KINDS["conv2d"](np.random.default_rng(0))
    form = Form.whole(graph.operators[-1], graph)
    others = [k for k in FAST if not (k.asked or isinstance(k, RowKernel | Gathered))]
    with_some = {k.name for k in others if type(k).scratch_bytes is not Kernel.scratch_bytes}
    assert with_some == set(SCRATCH)
    assert named("int8.conv2d", form, core()).scratch_bytes(form) == 0


@pytest.mark.parametrize("name", SCRATCH)
def test_less_scratch_is_refused_and_what_it_is_is_enough(name: str, tmp_path: Path) -> None:
    """It is the end of the arena, and what lies behind that is watched."""
    (graph, *_), plan = next(having(name))
    beside = plan.buffer["beside"]
    for less in (
        replace(beside, shape=(beside.shape[0] - 1,)),
        replace(beside, map=beside.map.moved(2)),  # a byte off a word
    ):
        buffers = tuple(less if b is beside else b for b in plan.buffers)
        with pytest.raises(ThimbleError, match=rf"{name} needs \d+ B of scratch at a word"):
            generate(graph, replace(plan, buffers=buffers), core(), {})
    as_c(tmp_path, graph, plan, core())


def test_dense_layers_over_their_inputs_are_fast(tmp_path: Path) -> None:
    """They widen what they read before they write."""
    net = Net((96,), np.random.default_rng(0), name="net")
    for outputs in (40, 120, 24, 7):
        net.dense(outputs)
    graph, board = net.graph(), core()
    plan = Joint().plan(graph, board)
    steps = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    assert all(step.kernel == "cortex_m.dense" for step in steps)
    assert cost(plan, graph, board, verify(plan, graph)).pmu_bytes <= 120 + 40
    as_c(tmp_path, graph, plan, board)
