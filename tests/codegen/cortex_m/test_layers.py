"""Fast kernels, one random layer at a time: their portable twin gives the graph's outputs, and with
ASan and UBSan touches nothing that the plan did not grant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.plan.verify import verify
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.support import core, fast, twin
from tests.codegen.int8.support import frames
from tests.codegen.support import by_tier
from tests.comparing import equal
from tests.graphs import random_graph
from tests.tiers import quick


def check(kind: str, seed: int, folder: Path) -> int:
    graph = KINDS[kind](np.random.default_rng(seed))
    plan = Ordinary().plan(graph, core())
    verify(plan, graph)
    native = twin(folder / f"{kind} {seed}", graph, plan)
    given = frames(graph, 4, seed)
    equal(native(given), graph.outputs(given), kind=kind, seed=seed)
    return fast(native, "conv2d" if kind in ("dilated", "pointwise") else kind)


@pytest.mark.parametrize(("kind", "seeds"), by_tier(KINDS, range(1), range(1, 5), range(5, 45)))
def test_random_layers(kind: str, seeds: range, tmp_path: Path) -> None:
    used = sum(check(kind, seed, tmp_path) for seed in seeds)
    assert used >= len(seeds) * 2 // 3


def check_network(seed: int, folder: Path) -> None:
    graph = random_graph(seed)
    given = frames(graph, 4, seed)
    native = twin(folder / f"{seed}", graph)
    equal(native(given), graph.outputs(given), seed=seed)


@pytest.mark.parametrize("seeds", quick(1, [range(2000, 2002), range(2002, 2060)], ci=0))
def test_random_networks(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        check_network(seed, tmp_path)
