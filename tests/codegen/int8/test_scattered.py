"""Every operator on rows, pixels and elements that lie anywhere: whole, in loops, as sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from tests.codegen.int8.loops import looped
from tests.codegen.int8.scattered import KINDS, Kind, scattered
from tests.codegen.int8.support import Native, apart, frames
from tests.codegen.support import by_tier
from tests.comparing import equal
from tests.graphs import random_graph


def check(kind: Kind, seed: int, loops: bool, folder: Path) -> str:
    graph = random_graph(seed)
    plan = scattered(looped(graph, seed) if loops else apart(graph), graph, kind, seed)
    verify(plan, graph)
    given = frames(graph, 4, seed)
    expected = graph.outputs(given)
    equal(interpret(plan, graph, given[2]).output, expected[2], seed=seed)
    native = Native(folder / f"{seed}", graph, plan)
    equal(native(given), expected, kind=kind, seed=seed)
    return native.files["model.c"]


@pytest.mark.parametrize(("kind", "seeds"), by_tier(KINDS, range(1), range(1, 3), range(3, 12)))
def test_whole_operators(kind: Kind, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        assert "nn_row_places[" in check(kind, seed, False, tmp_path)


@pytest.mark.parametrize(("kind", "seeds"), by_tier(KINDS, range(0), range(2), range(2, 12)))
def test_loops_and_sums(kind: Kind, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        check(kind, seed, True, tmp_path)
