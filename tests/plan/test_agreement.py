"""The verifier agrees with a second one that shares nothing with it, on sound plans and spoilt
ones; what both accept computes the graph under any timing."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.plan import matches, memory_state, races, serialize, tokens, verify
from tests.plan.agreement import Case, Tally, by_reference, case, compared
from tests.plan.fixtures import FIXTURES
from tests.plan.subjects import STRATEGIES, subjects
from tests.tiers import quick

PLANS = 10_000
UNUSED = {"Compute.delay", "Plan.graph", "Plan.strategy"}


def test_reference_shares_nothing_with_the_verifier() -> None:
    """It knows the words of a plan and of a graph, and nothing that is made of them."""
    known = ("pipeline.plan.vocabulary", "pipeline.graph", "tests.plan.reference")
    for part in Path(__file__).parent.glob("reference*.py"):
        tree = ast.parse(part.read_text())
        found = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        ours = {name for name in found if name.startswith(("pipeline", "tests"))}
        assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
        assert not [name for name in ours if not name.startswith(known)]


@pytest.mark.ci
def test_every_strategy_is_a_subject() -> None:
    """Where two options make the same plan, one of them is."""
    planned = {name.split()[0] for name in subjects()}
    options = {path.stem for path in STRATEGIES.glob("*.yaml")}
    assert options - {"naive", "ordinary"} <= planned and planned & {"naive", "ordinary"}
    assert {"larger", "row_ring", "double_buffer"} <= subjects().keys()


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures_are_accepted_by_both(name: str) -> None:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    assert by_reference(plan, graph) == (verify.verify(plan, graph).computed, "")


def agrees(tally: Tally) -> Tally:
    assert not tally.faults
    assert 0.3 < tally.accepted / tally.plans < 0.75, "the plans test one side only"
    assert sum(tally.stricter.values()) <= tally.plans / 50
    return tally


@pytest.mark.parametrize("first", quick(1, range(0, 320, 80)))
def test_both_verifiers_agree(first: int) -> None:
    assert agrees(compared(range(first, first + 80))).shown.keys() >= serialize.CLASSES.keys()


@pytest.mark.slow
def test_both_verifiers_agree_on_many_plans() -> None:
    """Of every word of the vocabulary there are sound ones that use it."""
    shown = agrees(compared(range(PLANS))).shown
    words = {f"{name}.{f.name}" for name, cls in serialize.CLASSES.items() for f in fields(cls)}
    assert not [word for word in words - UNUSED if shown[word] < 20]


def _nothing(*_: Any, **__: Any) -> None:
    """A check that does not check."""


def _a_unit_early(read_times: Callable[..., Any]) -> Callable[..., Any]:
    def early(*args: Any) -> Any:
        return read_times(*args) - args[-1]  # the last argument: the last reads, not the first

    return early


HOLES: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "order within a step": (memory_state.MemoryState, "in_order", lambda old: _nothing),
    "units": (verify, "read_times", _a_unit_early),
    "streams": (memory_state.MemoryState, "take", lambda old: _nothing),
    "races": (races.Races, "touch", lambda old: _nothing),
    "scratch": (memory_state.MemoryState, "scratch", lambda old: _nothing),
    "tokens of scratch": (tokens.Tokens, "destroy", lambda old: _nothing),
    "steps": (tokens, "form", lambda old: lambda buffer: old(buffer)._replace(step=1)),
    "widths of sums": (verify._Verifier, "sums_fit", lambda old: _nothing),
    "completeness": (verify._Verifier, "whole", lambda old: _nothing),
    "the bias": (verify._Verifier, "completion", lambda old: lambda *_: []),
    "ends of memories": (matches, "_inside", lambda old: _nothing),
}


@pytest.fixture(scope="module")
def refused() -> list[Case]:
    """What the reference refuses of 2,000 plans."""
    return [made for made in map(case, range(2_000)) if by_reference(*made)[1]]


@pytest.mark.slow
@pytest.mark.parametrize("hole", HOLES)
def test_plans_find_holes(hole: str, refused: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    """A verifier that lacks one of its checks accepts some of what it should refuse."""
    owner, name, broken = HOLES[hole]
    monkeypatch.setattr(owner, name, broken(getattr(owner, name)))
    if name == "form":  # of moves, too
        monkeypatch.setattr(verify, name, getattr(owner, name))
    accepted = 0
    for plan, graph in refused:
        try:
            verify.verify(plan, graph)
        except Exception:  # a PlanError, or, broken as it is, any other
            continue
        accepted += 1
    assert 0 < accepted < len(refused)
