"""Every reader answers unproved plans, and what is left of damaged files, or says a line."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.plan import serialize
from pipeline.plan.vocabulary import Plan, Track
from tests.plan.damage import TEXTS, TREES, damaged
from tests.plan.mutations import mutant
from tests.plan.readers import READERS, answers
from tests.plan.subjects import subjects
from tests.tiers import quick


def unproved(number: int) -> int:
    """Shows every reader ``number`` mutants of each subject; how many there were."""
    shown = 0
    for name, subject in subjects().items():
        rng = np.random.default_rng([9, *name.encode()])
        for _ in range(number):
            if plan := mutant(rng, subject.plan, subject.graph):
                assert not list(answers(plan, subject, READERS)), (name, plan)
                shown += 1
    return shown


@pytest.mark.ci
def test_readers_take_sound_plans() -> None:
    for subject in list(subjects().values())[::5]:
        assert not list(answers(subject.plan, subject, READERS))


@pytest.mark.parametrize(
    "changed",
    [
        lambda plan: replace(plan, tracks=(*plan.tracks, Track("idle", ()))),
        lambda plan: replace(plan, notes=(("bound_us", 1e9),)),
        lambda plan: replace(
            plan,
            memories=tuple(replace(each, name=f"other {each.name}") for each in plan.memories),
            buffers=tuple(replace(each, memory=f"other {each.memory}") for each in plan.buffers),
        ),
    ],
    ids=["a track without steps", "a bound without a card", "not the board's memories"],
)
def test_readers_of_what_no_strategy_makes(changed: Callable[[Plan], Plan]) -> None:
    subject = subjects()["herringbone"]
    assert not list(answers(changed(subject.plan), subject, READERS))


@pytest.mark.parametrize(("number", "least"), quick(0, [(1, 15), (100, 1000)], ci=1))
def test_readers_of_mutants(number: int, least: int) -> None:
    assert unproved(number) > least


SLOW = {"page", "generate avr", "generate cortex_m", "generate host"}
"""Readers that see one plan in eight."""


def damage(path: Path, seed: int, number: int) -> Counter[str]:
    """Count what became of ``number`` damages of each subject's file."""
    found: Counter[str] = Counter()
    for name, subject in subjects().items():
        rng = np.random.default_rng([seed, *name.encode()])
        for _ in range(number):
            kinds, content = damaged(rng, subject.plan)
            path.write_bytes(content)
            found.update(kinds)
            try:
                plan = serialize.load(path)
            except ThimbleError as error:
                assert str(error) and "\n" not in str(error), (kinds, str(error))
                found["refused"] += 1
                continue
            found["a plan"] += 1
            chosen = {n: r for n, r in READERS.items() if n not in SLOW or rng.random() < 0.125}
            assert not list(answers(plan, subject, chosen)), (name, kinds, content)
    assert {*TREES, *TEXTS} <= found.keys() and found["a plan"] > found["refused"] / 20
    return found


@pytest.mark.parametrize(("seed", "number", "least"), quick(0, [(1, 6, 90), (2, 100, 1500)], ci=1))
def test_damaged_files(seed: int, number: int, least: int, tmp_path: Path) -> None:
    found = damage(tmp_path / "plan.json", seed, number)
    assert found["refused"] + found["a plan"] >= least
