"""A dense layer widens its input before it writes: its output may lie anywhere over that."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.plan.cost import cost
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute
from pipeline.strategies.joint import Joint
from tests.codegen.cortex_m.support import core, twin
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.graphs import Net


def test_layers_in_place_are_fast(tmp_path: Path) -> None:
    net = Net((96,), np.random.default_rng(0), name="net")
    for outputs in (40, 120, 24, 7):
        net.dense(outputs)
    graph, board = net.graph(), core()
    plan = Joint().plan(graph, board)
    report = verify(plan, graph)
    steps = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    assert all(step.kernel == "cortex_m.dense" for step in steps)
    assert cost(plan, graph, board, report).pmu_bytes <= 120 + 40
    given = frames(graph, 3)
    equal(twin(tmp_path, graph, plan)(given), graph.outputs(given))
