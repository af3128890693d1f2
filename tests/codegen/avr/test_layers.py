"""Kernels in assembly for bytes: their C gives the graph's outputs natively, and they give them on
the simulated chip, with the stack that was announced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import artifacts
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, simavr
from pipeline.targets.harness import harness_sources
from tests.codegen.avr.support import MEGA, OWN, chosen, kernels, layers, least_zero
from tests.codegen.int8.support import Native, frames
from tests.graphs import Net
from tests.targets.conftest import needs_avr
from tests.tiers import quick


def separable(seed: int = 0) -> Graph:
    """Pointwise and depthwise layers, whose rows may lie over each other."""
    net = Net((9, 5, 2), np.random.default_rng(seed), name="separable")
    net.conv(8, (3, 3))
    for _ in range(2):
        least_zero(net)
        net.depthwise()
        net.conv(8, (1, 1))
    net.dense(4)
    return net.graph()


def given(graph: Graph, files: Mapping[str, str], plan: Plan, folder: Path) -> None:
    images = frames(graph, 4)
    native = Native(folder / "native", graph, plan, files=files)
    assert np.array_equal(native(images), graph.outputs(images))


def on_chip(graph: Graph, files: Mapping[str, str], folder: Path) -> None:
    for name, content in {**files, **harness_sources(MEGA)}.items():
        artifacts.write_text(folder / "generated" / name, content)
    size = builds.build(folder / "generated", folder / "build", MEGA)
    images = frames(graph, 3)
    expected = graph.outputs(images)
    data = images.astype(str(graph.tensors[graph.input].dtype)).view(np.uint8)
    runs = simavr.run(folder / "build", vars(size), MEGA, data)
    assert np.array_equal(runs.outputs.view(np.int8).reshape(expected.shape), expected)
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


@pytest.mark.parametrize("seed", quick(0, range(20), ci=1))
def test_the_same_in_c(seed: int, tmp_path: Path) -> None:
    graph = layers(seed)
    assert set(chosen(graph)) == OWN
    plan = Ordinary().plan(graph, MEGA)
    given(graph, generate(graph, plan, MEGA, {}), plan, tmp_path)


@needs_avr
@pytest.mark.parametrize("seed", quick(1, range(20), ci=1))
def test_on_the_chip(seed: int, tmp_path: Path) -> None:
    graph = layers(seed)
    plan = Ordinary().plan(graph, MEGA)
    assert kernels(plan) == OWN
    on_chip(graph, generate(graph, plan, MEGA, {}), tmp_path)


@needs_avr
@pytest.mark.parametrize("seed", quick(0, range(6), ci=1))
def test_rows_over_each_other(seed: int, tmp_path: Path) -> None:
    graph = separable(seed)
    plan = Joint().plan(graph, MEGA)
    assert kernels(plan) >= {"avr.conv2d", "avr.depthwise"}
    files = generate(graph, plan, MEGA, {})
    given(graph, files, plan, tmp_path)
    on_chip(graph, files, tmp_path)


def test_a_row_that_would_be_overwritten_is_refused() -> None:
    """Six pixels of eight are written before the others are read."""
    net = Net((1, 8, 4), np.random.default_rng(0), name="row")
    net.conv(4, (1, 3))
    graph = net.graph()
    plan = Ordinary().plan(graph, MEGA)
    held = {b.name: b for b in plan.buffers if b.role == "activation"}
    base = min(b.map.base for b in held.values())
    moved = tuple(
        replace(b, map=replace(b.map, base=base)) if b.name in held else b for b in plan.buffers
    )
    with pytest.raises(ThimbleError, match=r"avr.conv2d write its output .* before it is read"):
        generate(graph, replace(plan, buffers=moved), MEGA, {})
