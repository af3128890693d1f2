"""Kernels with less scratch where a board has no room for that of the fastest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.strategies.joint import Joint
from tests.codegen.cortex_m.by_row.layers import image_network, network
from tests.codegen.cortex_m.support import core, twin
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.tiers import quick


def planned(graph: Graph, arena: int = 1 << 20) -> Plan:
    """At least memory, on a board that leaves ``arena`` bytes."""
    board = core()
    board = replace(board, sram_bytes=arena + board.stack_reserve_bytes)
    return Joint().plan(graph, board)


def portable(plan: Plan) -> set[str]:
    """Operators that are computed by kernels that need no scratch since they widen nothing."""
    steps = (step for step in plan.tracks[0].steps if isinstance(step, Compute))
    return {step.op for step in steps if step.kernel in ("int8.conv2d", "int8.dense")}


@pytest.mark.parametrize("seed", quick(0, range(12), ci=1))
def test_only_what_has_no_room_is_slower(seed: int, tmp_path: Path) -> None:
    graph = (image_network, network)[seed % 2](seed)
    wide = planned(graph)
    most, least, given = arena_bytes(wide), arena_bytes(planned(graph, 1)), frames(graph, 2)
    assert not portable(wide) and least < most
    before = most
    for arena in map(int, np.linspace(most - 1, least, 2)):
        plan = planned(graph, arena)
        verify(roomy(plan), graph)
        assert arena_bytes(plan) <= before
        equal(twin(tmp_path / f"{arena}", graph, plan)(given), graph.outputs(given))
        before = arena_bytes(plan)
    assert len(portable(planned(graph, most - 1))) < len(portable(planned(graph, 1)))
