"""What every option of conf/strategy keeps to: one that is there is tested here.

A random network on a board is planned, or refused in one line. A plan is proved, gives the graph's
outputs when it is interpreted, has costs and a verdict, and where there is C for it, compiled
natively and run, that does the same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from pipeline import config, verdict
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.plan.calibrate import calibrated, rounds
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.base import LAYOUTS, Strategy
from tests.codegen import support
from tests.codegen.int8.support import Native, frames
from tests.comparing import equal
from tests.contracts.networks import BOARDS, graphs
from tests.tiers import quick

OPTIONS = sorted((ROOT / "conf" / "strategy").glob("*.yaml"))
TIERS = ((0, 6, 1), (1, 9, 2), (2, 300, 100))
"""The seed of networks, how many plans of them, and how many of these are compiled."""
every = pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.stem)


@every
def test_its_yaml_makes_the_strategy_it_names(path: Path) -> None:
    node = yaml.safe_load(path.read_text())
    strategy = config.instantiate(node)
    assert node["name"] == path.stem and isinstance(strategy, Strategy)
    assert type(strategy).name == {"naive": "ordinary"}.get(path.stem, path.stem)


def variants(path: Path) -> list[Strategy]:
    """The option as it is, and in each layout that it has."""
    node = yaml.safe_load(path.read_text())
    layouts = LAYOUTS if "layout" in node else LAYOUTS[:1]
    return [config.instantiate({**node, "layout": layout}) for layout in layouts]


def one_line(error: ThimbleError) -> None:
    text = str(error)
    assert "\n" not in text and 20 < len(text) < 400, text


def planned(strategy: Strategy, graph: Graph, hardware: Hardware) -> Plan | None:
    """As stage schedule does it; None when it is refused."""
    try:
        plan = strategy.plan(graph, hardware)
    except ThimbleError as error:
        one_line(error)
        return None
    return calibrated(plan, graph, frames(graph, 4))


def check_plan(plan: Plan, graph: Graph, hardware: Hardware) -> None:
    proof = verify(roomy(plan), graph)
    report = verdict.check(plan, graph, hardware, proof)  # which runs it on random frames
    brightest = frames(graph, 2)[1:]
    if not rounds(plan):
        equal([interpret(roomy(plan), graph, brightest[0]).output], graph.outputs(brightest))
    assert report["status"] in ("ok", "infeasible") and report["pmu_bytes"] > 0
    assert report["pmu_bytes"] <= report["arena_bytes"]
    assert (report["macs_executed"] > 0) == (report["macs"] > 0)


def check_c(plan: Plan, graph: Graph, hardware: Hardware) -> bool:
    """Whether there is C for it."""
    try:
        files = generate(graph, plan, hardware, {})
    except ThimbleError as error:
        one_line(error)
        return False
    given = frames(graph, 4)
    with tempfile.TemporaryDirectory() as folder:
        if hardware.core == "avr":
            found = support.Native(Path(folder), graph, plan, hardware)(given)
        else:
            found = Native(Path(folder), graph, plan, files=files)(given)
    if rounds(plan):
        expected = np.stack([interpret(roomy(plan), graph, frame).output for frame in given])
    else:
        expected = graph.outputs(given)
    equal(found, expected, strategy=plan.strategy, board=hardware.name)
    return True


def tried(path: Path, start: int, enough: int, compiled: int) -> tuple[int, int]:
    """How many plans were checked, of random networks on boards until there were ``enough``, and
    how many of them in C, at most ``compiled``. ``start`` seeds the networks."""
    plans = in_c = 0

    @seed(start)
    @settings(max_examples=5 * enough, deadline=None, database=None)
    @given(graphs(), st.sampled_from(sorted(BOARDS)))
    def one(graph: Graph, board: str) -> None:
        nonlocal plans, in_c
        for strategy in variants(path) if plans < enough else ():
            plan = planned(strategy, graph, BOARDS[board])
            if plan is not None:
                plans += 1
                check_plan(plan, graph, BOARDS[board])
                in_c += in_c < compiled and check_c(plan, graph, BOARDS[board])

    one()
    return plans, in_c


@every
@pytest.mark.parametrize(("start", "enough", "compiled"), quick(1, TIERS, ci=1))
def test_its_plans_and_its_c_are_right(path: Path, start: int, enough: int, compiled: int) -> None:
    plans, in_c = tried(path, start, enough, compiled)
    assert plans >= enough // 3 and in_c >= compiled // 2
