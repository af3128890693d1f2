"""Fast kernels on rows: some at a time, one after the other, in rings, or anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.strategies.patch import Patch
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.rows import in_rows, with_scratch
from tests.codegen.cortex_m.support import core, fast, twin
from tests.codegen.int8.plans import PLANS
from tests.codegen.int8.scattered import scattered
from tests.codegen.int8.support import Native, frames
from tests.comparing import equal
from tests.graphs import Net, random_graph
from tests.tiers import quick

IMAGES = {"conv2d": "conv2d", "dilated": "conv2d", "pointwise": "conv2d", "depthwise": "depthwise",
          "pool": "pool", "sum": "sum", "gate": "gate"}  # fmt: skip
"""Kinds of layers that make images, and the fast kernels for them."""


def check(graph: Graph, plan: Plan, folder: Path, seed: int = 0) -> Native:
    verify(plan, graph)
    given = frames(graph, 4, seed)
    native = twin(folder / f"{seed}", graph, plan)
    equal(native(given), graph.outputs(given), seed=seed)
    return native


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("kind", quick(("conv2d", "depthwise", "sum"), IMAGES))
@pytest.mark.parametrize(
    "seeds", quick(1, [range(1), range(1, 4), range(4, 12)], ci=1), ids=["few", "more", "most"]
)
def test_layers(kind: str, anywhere: bool, seeds: range, tmp_path: Path) -> None:
    """Of several rows at once, each anywhere, there are no fast sums."""
    used = 0
    for seed in seeds:
        graph = KINDS[kind](np.random.default_rng(seed))
        plan = in_rows(graph, seed)
        if anywhere:
            plan = scattered(plan, graph, "rows", seed)
        used += fast(check(graph, plan, tmp_path, seed), IMAGES[kind])
    assert used >= (len(seeds) // 3 if anywhere else len(seeds) * 2 // 3)


@pytest.mark.parametrize("seed", quick(1, range(3000, 3012), ci=2))
def test_networks_of_rows_anywhere(seed: int, tmp_path: Path) -> None:
    graph = random_graph(seed)
    check(graph, scattered(in_rows(graph, seed), graph, "rows", seed), tmp_path, seed)


def test_rings(tmp_path: Path) -> None:
    graph, plan = PLANS["row ring"]()
    native = check(graph, with_scratch(plan), tmp_path)
    assert fast(native, "conv2d") and "% 3" in native.files["model.c"]


@pytest.mark.parametrize("seed", quick(1, range(4), ci=1))
def test_patches_as_wide_as_the_image(seed: int, tmp_path: Path) -> None:
    """Each by itself, or in a loop whose rows go round rings (the last seed); what a patch has of
    its last rows may be less than of others."""
    graph = inverted_residual(seed)
    plan = Patch(rows=3, columns=1).plan(graph, core())
    native = check(graph, plan, tmp_path, seed)
    assert fast(native, "conv2d") >= 2 and fast(native, "depthwise")
    kernels = {step.kernel for step in statements(plan) if isinstance(step, Compute)}
    assert kernels and all(kernel.startswith("cortex_m.") for kernel in kernels)


def inverted_residual(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    net = Net((int(rng.integers(12, 17)), int(rng.integers(9, 14)), 3), rng, name="residual")
    net.conv(8, stride=(2, 2) if seed % 2 else (1, 1))
    start = net.last
    net.conv(24, (1, 1))
    net.depthwise()
    net.plus(net.conv(8, (1, 1)), start)
    net.maximum((2, 2))
    net.dense(5)
    return net.graph()
