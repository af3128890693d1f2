"""What every option of conf/strategy keeps to: one that is there is tested here.

A random network on a board is planned, or refused in one line. A plan is proved, gives the graph's
outputs when it is interpreted, has costs and a verdict, and where there is C for it, compiled
natively and run, that does the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
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

OPTIONS = sorted((ROOT / "conf" / "strategy").glob("*.yaml"))
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
    verify(roomy(plan), graph)
    given = frames(graph, 3)
    if not rounds(plan):
        found = [interpret(roomy(plan), graph, frame).output for frame in given]
        equal(found, graph.outputs(given))
    report = verdict.check(plan, graph, hardware)
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
    expected = [interpret(roomy(plan), graph, frame).output for frame in given]
    equal(found, expected)
    return True


def tried(
    path: Path, examples: int, check: Callable[[Plan, Graph, Hardware], object], enough: int = 1000
) -> int:
    """How many of ``examples`` random networks on boards were planned and checked, until there
    were ``enough``."""
    plans = 0

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(graphs(), st.sampled_from(sorted(BOARDS)))
    def one(graph: Graph, board: str) -> None:
        nonlocal plans
        for strategy in variants(path) if plans < enough else ():
            plan = planned(strategy, graph, BOARDS[board])
            if plan is not None:
                plans += 1
                check(plan, graph, BOARDS[board])

    one()
    return plans


@every
def test_its_plans_are_right(path: Path) -> None:
    assert tried(path, 25, check_plan)


@every
def test_its_c_does_what_the_plan_does(path: Path) -> None:
    assert tried(path, 40, check_c, enough=5)


@pytest.mark.ci
@every
def test_many_of_its_plans_are_right(path: Path) -> None:
    assert tried(path, 45, check_plan)


@pytest.mark.ci
@every
def test_much_of_its_c_does_what_the_plan_does(path: Path) -> None:
    assert tried(path, 80, check_c, enough=8)


@pytest.mark.slow
@every
def test_all_is_right_of_hundreds(path: Path) -> None:
    assert tried(path, 300, check_plan)
    assert tried(path, 300, check_c, enough=100)
