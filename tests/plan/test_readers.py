"""Every reader of a plan answers one that nobody has proved: a result, or one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.plan.vocabulary import Plan, Track
from tests.plan.mutations import mutant
from tests.plan.readers import READERS, answers
from tests.plan.subjects import subjects


def unproved(number: int) -> int:
    """Shows every reader ``number`` mutants of each subject; how many there were."""
    shown = 0
    for name, subject in subjects().items():
        rng = np.random.default_rng([9, *name.encode()])
        for _ in range(number):
            made, _ = mutant(rng, subject.plan, subject.graph)
            if made.plan is not None:
                assert not list(answers(made.plan, subject, READERS)), (name, made)
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


@pytest.mark.ci
def test_readers_of_mutants() -> None:
    assert unproved(1) > 20


@pytest.mark.slow
def test_readers_of_many_mutants() -> None:
    assert unproved(100) > 1000
