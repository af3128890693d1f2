"""Contract of every option of conf/strategy: one that is there is tested here.

A random network on a board is planned, or refused in one line. A plan is proved, gives the graph's
outputs when it is interpreted, has costs and a verdict, and where there is C for it, compiled
natively and run, that does the same. All take one list of objectives, and a page says what each
makes of them.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

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
from pipeline.strategies.base import LAYOUTS, OBJECTIVES, Strategy
from tests.codegen.int8.support import host
from tests.codegen.support import frames, uno
from tests.comparing import equal
from tests.graphs import random_graph
from tests.programs import refusal
from tests.several import recalling, several
from tests.strategies.chains import drawn
from tests.strategies.proving import as_c
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named
from tests.tiers import quick

BOARDS: dict[str, Hardware] = {
    "an Uno whose input streams in": uno(),
    "an Uno": uno(weights_in="flash", streams=False),
    "a computer": host(),
    "a board with a card": board_named("stm32f746g_sd"),
}
"""One of each kind that strategies and generators tell apart."""

WORDS = (
    *("", "", "", "sums", "scratch", "stream", "tile", "ring", "aside", "peeled", "rows", "in"),
    *("0", "1", "2", "0.0", "0.1"),
)
"""Suffixes of the buffers that planners make of a tensor; "": networks keep their names."""


def graphs() -> st.SearchStrategy[Graph]:
    """Chains of few bits, chains of 8 bits, and int8 networks with branches, some of several inputs
    and outputs, some with states; some have tensors that are called as if they belonged to others.
    """
    seeds = st.integers(0, 100_000)
    few_bits = seeds.map(lambda seed: drawn(np.random.default_rng(seed)).graph())
    every = few_bits | seeds.map(random_chain) | seeds.map(random_graph) | seeds.map(several)
    kept = st.builds(
        recalling, few_bits | seeds.map(random_graph), seeds.map(np.random.default_rng)
    )
    return st.builds(crowded, every | kept, st.sampled_from(WORDS))


def crowded(graph: Graph, word: str) -> Graph:
    """Each tensor is called as the one before it, and ``word``."""
    if not word:
        return graph
    names = {name: ".".join(["x", *[word] * n]) for n, name in enumerate(graph.tensors)}

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            return names.get(value, value)
        if isinstance(value, Mapping):
            return {names[key]: renamed(each) for key, each in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            changed = {f.name: renamed(getattr(value, f.name)) for f in fields(value) if f.init}
            return replace(value, **changed)
        return tuple(map(renamed, value)) if isinstance(value, tuple) else value

    return cast(Graph, renamed(graph))


OPTIONS = sorted((ROOT / "conf" / "strategy").glob("*.yaml"))
TIERS = ((4, 4, 1), (1, 9, 2), (2, 120, 40))
"""The seed of networks, how many plans of them, and how many of these are compiled."""
every = pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.stem)


def option(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


@every
def test_its_yaml_makes_the_strategy_it_names_for_any_objective_of_the_list(path: Path) -> None:
    node = option(path)
    strategy = config.instantiate(node)
    assert node["name"] == path.stem and isinstance(strategy, Strategy)
    assert type(strategy).name == {"naive": "ordinary"}.get(path.stem, path.stem)
    assert node["objective"] == strategy.objective
    for objective in OBJECTIVES:
        assert config.instantiate(node | {"objective": objective}).objective == objective
    error = refusal(lambda: config.instantiate(node | {"objective": "speed"}))
    choices = "choose memory, latency, throughput or energy"
    assert error == f"strategy.objective=speed: {choices}"


def variants(path: Path) -> list[Strategy]:
    """The option as it is, and in each layout that it has."""
    node = option(path)
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
        equal([interpret(roomy(plan), graph, brightest[0]).output], graph.evaluate(brightest))
    assert report["status"] in ("ok", "infeasible") and report["pmu_bytes"] > 0
    assert report["pmu_bytes"] <= report["arena_bytes"]
    assert (report["macs_executed"] > 0) == (report["macs"] > 0)


def check_c(plan: Plan, graph: Graph, hardware: Hardware) -> bool:
    """Run the plan's C; return whether there is C for it."""
    try:
        files = generate(graph, plan, hardware, {})
    except ThimbleError as error:
        one_line(error)
        return False
    with tempfile.TemporaryDirectory() as folder:
        as_c(Path(folder), graph, plan, hardware, files=files)
    return True


def tried(path: Path, start: int, enough: int, compiled: int) -> tuple[int, int]:
    """Count the plans that were checked, of random networks on boards until there were ``enough``,
    and those of them in C, at most ``compiled``. ``start`` seeds the networks."""
    plans = in_c = 0

    @seed(start)
    @settings(max_examples=5 * enough, database=None)
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


def test_the_page_has_a_row_for_each_strategy_and_a_column_for_each_objective() -> None:
    page = (ROOT / "docs" / "strategies.md").read_text()
    lines = page[page.index("| strategy |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [line.strip("| ").split(" | ") for line in lines]
    assert tuple(head[1:]) == OBJECTIVES
    named = {name.strip("`") for row in rows for name in row[0].split(", ")}
    assert named == {path.stem for path in OPTIONS}
    for path in OPTIONS:
        (row,) = (row for row in rows if f"`{path.stem}`" in row[0])
        chosen = OBJECTIVES.index(option(path)["objective"])
        assert [cell.startswith("**") for cell in row[1:]] == [n == chosen for n in range(4)]
