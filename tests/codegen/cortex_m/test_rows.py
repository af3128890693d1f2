"""Fast kernels on rows: some at a time, one after the other, in rings, or anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.rows import in_rows, with_scratch
from tests.codegen.cortex_m.support import fast, twin
from tests.codegen.int8.plans import PLANS
from tests.codegen.int8.scattered import scattered
from tests.codegen.int8.support import Native, frames
from tests.graphs import random_graph
from tests.tiers import quick

IMAGES = {"conv2d": "conv2d", "dilated": "conv2d", "pointwise": "conv2d", "depthwise": "depthwise",
          "pool": "pool", "sum": "sum"}  # fmt: skip
"""Kinds of layers that make images, and the fast kernels for them."""


def check(graph: Graph, plan: Plan, folder: Path, seed: int = 0) -> Native:
    verify(plan, graph)
    given = frames(graph, 4, seed)
    native = twin(folder / f"{seed}", graph, plan)
    assert np.array_equal(native(given), graph.outputs(given)), seed
    return native


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("seeds", quick(1, [range(3), range(3, 12)]), ids=["few", "more"])
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


@pytest.mark.parametrize("seed", quick(2, range(3000, 3012)))
def test_networks_of_rows_anywhere(seed: int, tmp_path: Path) -> None:
    graph = random_graph(seed)
    check(graph, scattered(in_rows(graph, seed), graph, "rows", seed), tmp_path, seed)


def test_rings(tmp_path: Path) -> None:
    graph, plan = PLANS["row ring"]()
    native = check(graph, with_scratch(plan), tmp_path)
    assert fast(native, "conv2d") and "% 3" in native.files["model.c"]
