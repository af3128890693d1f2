"""Kernels that read weights from windows, in the order that the tensor has: their C as any machine
computes it. The assembly is tried in test_simulated.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.card import tracks
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, cortex_m
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.int8.support import Native, frames
from tests.comparing import equal
from tests.strategies.swap.nets import Chain, random_chain
from tests.targets.cortex_m import board_named
from tests.tiers import quick

ORDERED = ("conv2d", "pointwise", "depthwise", "dense")


def board(sram_bytes: int) -> Hardware:
    return replace(board_named("stm32f746g_sd"), sram_bytes=sram_bytes, stack_reserve_bytes=0)


def computing(plan: Plan) -> list[Compute]:
    return [step for step in tracks.inside(plan.tracks[0].steps) if isinstance(step, Compute)]


def check(graph: Graph, sram_bytes: int, folder: Path) -> set[str]:
    """The kernels that the plan names."""
    hardware = board(sram_bytes)
    plan = Swap().plan(graph, hardware)
    native = Native(folder, graph, plan, files=generate(graph, plan, hardware, {}))
    given = frames(graph, 3)
    equal(native(given), graph.outputs(given), **native.about)
    return {step.kernel for step in computing(plan)}


@pytest.mark.parametrize(
    ("kind", "seed"), quick(1, [(kind, seed) for seed in range(4) for kind in ORDERED], ci=4)
)
def test_strides_edges_and_zero_points(tmp_path: Path, kind: str, seed: int) -> None:
    graph = KINDS[kind](np.random.default_rng(seed))
    kernels = check(graph, 1 << 18, tmp_path)
    op = graph.operators[-1]
    dense_or_plain = getattr(op, "groups", 1) == 1 and getattr(op, "dilation", (1, 1)) == (1, 1)
    made = graph.tensors[op.output].shape
    side_by_side = len(made) == 1 or made[1] > 1  # else two pixels at a time are one too many
    if graph.tensors[op.inputs[0]].dtype.signed and dense_or_plain and side_by_side:
        assert any(kernel.startswith("cortex_m.ordered") for kernel in kernels)


@pytest.mark.parametrize("seed", quick((12,), (0, 3, 9, 12), ci=1))
def test_chains_in_rings_of_rows_and_tiles_of_channels(tmp_path: Path, seed: int) -> None:
    graph = random_chain(seed)
    size = sum(tensor.size for tensor in graph.tensors.values())
    check(graph, max(2048, size // 2), tmp_path)


def convolution() -> tuple[Graph, Plan]:
    chain = Chain("net", (6, 6, 8))
    chain.conv(10, 3, 1, 1)
    graph = chain.graph(np.random.default_rng(0))
    return graph, Swap().plan(graph, board(1 << 14))


def test_weights_elsewhere_and_other_types_are_for_other_kernels() -> None:
    graph, plan = convolution()
    kernel, dense = cortex_m.ordered("cortex-m7")
    (step,) = computing(plan)
    form = Form.of(step, plan.buffer, graph)
    assert kernel.accepts(form) and not dense.accepts(form) and kernel.cycles(form) > 0
    assert not kernel.scratch_bytes(form)
    in_flash = Ordinary().plan(graph, board(1 << 14))
    (stored,) = computing(in_flash)
    assert not stored.kernel.startswith("cortex_m.ordered")
    why = kernel.why_not(Form.of(stored, in_flash.buffer, graph))
    assert why.startswith("cortex_m.ordered_conv2d is for") and "window" in why
    assert kernel.why_not(replace(form, partial=True))
    assert kernel.why_not(replace(form, overlaps=frozenset({"input"})))
    for fast in cortex_m.kernels("cortex-m7"):
        assert not fast.accepts(form), fast.name
