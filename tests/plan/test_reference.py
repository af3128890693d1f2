"""The verifier agrees with a second one that shares nothing with it, on plans made at random."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan import matches, memory_state, races, tokens, verify
from pipeline.plan.vocabulary import Plan, PlanError
from tests.plan.broken import BROKEN
from tests.plan.fixtures import FIXTURES
from tests.plan.random_plans import random_case
from tests.plan.reference import judge
from tests.plan.reference_agreement import Tally, by_reference, compared
from tests.plan.reference_places import Wrong
from tests.plan.test_frames import graph as frames_graph
from tests.plan.test_frames import plan as frames_plan

SAMPLE = 160
PLANS = 10_000

COMMON = (
    "1 tracks", "2 tracks", "3 tracks", "loop", "move", "ring", "table", "unit", "order", "partial",
    "narrow", "rounded", "recomputation", "scratch", "in place", "copies", "frames", "granule",
    "ram", "rom", "block", "stream", "alias", "rambling", "nothing to do", "input_kept",
    "4 bits", "8 bits", "16 bits", "32 bits",
)  # fmt: skip
RARE = ("nested loop", "sums moved", "one counter")


# --- the reference itself, on plans written by hand


def test_reference_shares_nothing_with_the_verifier() -> None:
    """It knows the words of a plan and of a graph, and nothing that is made of them."""
    known = {"pipeline.plan.vocabulary", "pipeline.graph"}
    parts = ("reference", "reference_cells", "reference_places", "reference_reads",
             "reference_steps")  # fmt: skip
    for part in parts:
        tree = ast.parse((Path(__file__).parent / f"{part}.py").read_text())
        found = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        ours = {name for name in found if name.startswith(("pipeline", "tests"))}
        assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
        assert not [
            name
            for name in ours
            if not name.startswith((*known, *(f"tests.plan.{other}" for other in parts)))
        ]


@pytest.mark.parametrize("name", FIXTURES)
def test_reference_accepts_fixtures(name: str) -> None:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    assert judge(plan, graph) == verify.verify(plan, graph).computed


def test_reference_follows_frames() -> None:
    assert judge(frames_plan(), frames_graph()) == {"conv2d0": 80}
    for copies, ahead in ((2, 3), (1, 2)):
        with pytest.raises(Wrong, match=r"race|needs"):
            judge(frames_plan(copies, ahead), frames_graph())


@pytest.mark.parametrize(("name", "broken", "said", "_"), BROKEN)
def test_reference_refuses(name: str, broken: Callable[[Plan], Plan], said: str, _: str) -> None:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    with pytest.raises(Wrong, match=said):
        judge(broken(plan), graph)


# --- agreement


def agrees(tally: Tally, features: tuple[str, ...], least: int) -> None:
    assert not tally.faults
    assert 0.2 < tally.accepted / tally.plans < 0.6, "the plans test one side only"
    assert sum(tally.stricter.values()) < tally.plans / 50
    lacking = [feature for feature in features if tally.shown[feature] < least]
    assert not lacking, f"too few sound plans with {lacking}"


def test_both_verifiers_agree() -> None:
    agrees(compared(range(SAMPLE)), COMMON, 1)


@pytest.mark.slow
def test_both_verifiers_agree_on_many_plans() -> None:
    agrees(compared(range(PLANS)), (*COMMON, *RARE), 20)


def _nothing(*_: Any, **__: Any) -> None:
    """A check that does not check."""


def _a_unit_early(read_times: Callable[..., Any]) -> Callable[..., Any]:
    def early(*args: Any) -> Any:
        return read_times(*args) - args[-1]  # the last argument: the last reads, not the first

    return early


def _without_frame(form: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, patch: form(self, replace(patch, frame=0))


def _without_step(form: Callable[..., Any]) -> Callable[..., Any]:
    return lambda buffer: form(buffer)._replace(step=1)


HOLES: dict[str, list[tuple[Any, str, Any]]] = {
    "order within a step": [(memory_state.MemoryState, "in_order", lambda old: _nothing)],
    "units": [(verify, "read_times", _a_unit_early)],
    "streams": [(memory_state.MemoryState, "take", lambda old: _nothing)],
    "races": [(races.Races, "touch", lambda old: _nothing)],
    "scratch": [(memory_state.MemoryState, "scratch", lambda old: _nothing)],
    "frames": [(tokens.Tokens, "form", _without_frame)],
    "steps": [(tokens, "form", _without_step), (verify, "form", _without_step)],
    "widths of sums": [(verify._Verifier, "sums_fit", lambda old: _nothing)],
    "completeness": [(verify._Verifier, "whole", lambda old: _nothing)],
    "the bias": [(verify._Verifier, "completion", lambda old: lambda *_: [])],
    "ends of memories": [(matches, "_inside", lambda old: _nothing)],
}


@pytest.fixture(scope="module")
def refused() -> list[tuple[Plan, Graph]]:
    """Well-formed plans that the reference refuses, of 2,000."""
    found = []
    for case in map(random_case, range(2_000)):
        if by_reference(case)[1]:
            try:
                found.append((case.plan(), case.graph))
            except PlanError:
                continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("hole", HOLES)
def test_random_plans_find_holes(
    hole: str, refused: list[tuple[Plan, Graph]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verifier that lacks one of its checks accepts some of what it should refuse."""
    for owner, name, broken in HOLES[hole]:
        monkeypatch.setattr(owner, name, broken(getattr(owner, name)))
    outcomes: Counter[str] = Counter()
    for plan, graph in refused:
        try:
            verify.verify(plan, graph)
            outcomes["accepted"] += 1
        except Exception as error:  # broken as it is, it may fail in any way
            outcomes[type(error).__name__] += 1
    assert outcomes["accepted"] and outcomes["PlanError"]
