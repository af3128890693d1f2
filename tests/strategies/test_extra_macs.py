"""The joint schedule where work may be repeated: exact, within the allowance, and smaller."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import Cost, cost
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.joint import Joint
from tests.codegen.int8.support import Native, frames, host
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies import bench_joint, nets
from tests.strategies.test_ordinary import BOARD
from tests.targets.cortex_m import board_named
from tests.tiers import quick

SHARES = (0.1, 0.3, 1.0)


def proved(graph: Graph, share: float, board: Hardware) -> tuple[Plan, Cost]:
    """The plan and its cost, after it has been verified and run on a random frame."""
    plan = roomy(Joint(extra_macs=share).plan(graph, board))
    report = verify(plan, graph)
    given = frames(graph, 3)[2:]
    equal(interpret(plan, graph, given[0]).output, graph.outputs(given)[0])
    assert report.macs_executed <= (1 + share) * graph.macs
    return plan, cost(plan, graph, board, report)


def narrow(depth: int = 2, side: int = 16) -> Graph:
    """Inverted residuals, as in a MobileNetV2: wide layers hold most."""
    net = nets.Net((side, side, 3))
    x = net.conv("input", 8, 3, 2)
    for number in range(depth):
        x = net.inverted(x, 8 + 4 * number, 6, 3, 1 + number % 2)
    return net.head(x, 4)


@pytest.mark.parametrize(
    ("depth", "side", "shares"), quick(1, [(2, 16, (1.0,)), (3, 16, (1.0, 2.0))])
)
def test_work_buys_memory(depth: int, side: int, shares: tuple[float, ...]) -> None:
    """The more of it may be repeated, the less is held; the plan says how much is."""
    graph, board = narrow(depth, side), replace(BOARD, streams_input=True)
    _, before = proved(graph, 0.0, board)
    for share in shares:
        plan, found = proved(graph, share, board)
        assert found.pmu_bytes < before.pmu_bytes
        repeated = found.macs_executed / graph.macs - 1
        assert dict(plan.notes)["repeated_macs_pct"] == pytest.approx(100 * repeated, abs=0.006)
        assert 0 < repeated <= share
        before = found


@pytest.mark.parametrize("seed", quick(1, range(60), ci=0))
@pytest.mark.parametrize("share", quick([0.3], SHARES, ci=1))
def test_random_networks_run_exactly_as_c(share: float, seed: int, tmp_path: Path) -> None:
    """With the kernels of any core, and with those of a Cortex-M by their twins."""
    graph, streamed = random_graph(seed), bool(seed % 2)
    board = replace(board_named("nucleo_l4r5zi") if seed % 3 else host(), streams_input=streamed)
    plan, found = proved(graph, share, board)
    least = cost(roomy(Joint().plan(graph, board)), graph, board)
    assert found.pmu_bytes <= least.pmu_bytes
    native = Native(tmp_path, graph, plan, files=generate(graph, plan, board, {}))
    given = frames(graph, 3, seed)
    equal(native(given), graph.outputs(given))


@pytest.mark.parametrize("name", quick(0, ["nucleo_l4r5zi", "host"], ci=1))
def test_inverted_residuals_run_exactly_as_c(name: str, tmp_path: Path) -> None:
    graph = narrow(2, 12)
    board = replace(host() if name == "host" else board_named(name), streams_input=True)
    plan, _ = proved(graph, 1.0, board)
    assert "repeated_macs_pct" in dict(plan.notes)
    native = Native(tmp_path, graph, plan, files=generate(graph, plan, board, {}))
    given = frames(graph, 3, 1)
    equal(native(given), graph.outputs(given))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), bench_joint.MOST_REPEATED)
def test_peaks_of_large_networks_hold(name: str, share: float) -> None:
    board = replace(board_named("nucleo_l4r5zi"), streams_input=True)
    graph = bench_joint.network(name)
    plan = roomy(Joint(extra_macs=share).plan(graph, board))
    found = cost(plan, graph, board, verify(plan, graph))
    assert found.pmu_bytes <= bench_joint.MOST_REPEATED[name, share]
    assert found.macs_executed <= (1 + share) * graph.macs


def test_nothing_is_repeated_unless_it_may_be() -> None:
    graph = narrow(1, 8)
    plan = Joint(extra_macs=0).plan(graph, BOARD)
    assert plan == Joint().plan(graph, BOARD)
    assert not verify(plan, graph).recomputed and "repeated_macs_pct" not in dict(plan.notes)


def test_equal_plans_each_time() -> None:
    graph = narrow(1, 12)
    assert Joint(extra_macs=0.5).plan(graph, BOARD) == Joint(extra_macs=0.5).plan(graph, BOARD)


@pytest.mark.parametrize("share", [-0.1, nan, inf, "much", None, True])
def test_a_share_is_a_number(share: Any) -> None:
    with pytest.raises(ThimbleError, match=r"^strategy.extra_macs=.*0 or more, such as 0\.1$"):
        Joint(extra_macs=share)
