"""The verifier agrees with a second one; what both accept computes the graph under any timing."""

import ast
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from pipeline.plan import serialize, verify
from tests.plan.agreement import Tally, by_reference, compared
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
    """Look for the plans of every option, or of one of two that make the same plan."""
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


@pytest.mark.parametrize("first", quick(0, (0, 80)))
def test_both_verifiers_agree(first: int) -> None:
    assert agrees(compared(range(first, first + 80))).shown.keys() >= serialize.CLASSES.keys()


@pytest.mark.slow
def test_both_verifiers_agree_on_many_plans() -> None:
    """Look for sound plans that use every word of the vocabulary."""
    shown = agrees(compared(range(PLANS))).shown
    words = {f"{name}.{f.name}" for name, cls in serialize.CLASSES.items() for f in fields(cls)}
    assert not [word for word in words - UNUSED if shown[word] < 20]
