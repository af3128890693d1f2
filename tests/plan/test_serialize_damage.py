"""A damaged ``plan.json`` is a plan all the same, or one line that says what is wrong with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.plan import serialize
from tests.plan.damage import TEXTS, TREES, damaged
from tests.plan.readers import READERS, answers
from tests.plan.subjects import subjects

SLOW = {"page", "generate avr", "generate cortex_m", "generate host"}
"""Readers that see one plan in eight."""


def damage(path: Path, seed: int, number: int) -> Counter[str]:
    """What became of ``number`` damages of each subject's file."""
    found: Counter[str] = Counter()
    for name, subject in subjects().items():
        rng = np.random.default_rng([seed, *name.encode()])
        for _ in range(number):
            kind, content = damaged(rng, subject.plan)
            path.write_bytes(content)
            found.update(kind.split(" and "))
            try:
                plan = serialize.load(path)
            except ThimbleError as error:
                assert str(error) and "\n" not in str(error), (kind, str(error))
                found["refused"] += 1
                continue
            found["a plan"] += 1
            chosen = {n: r for n, r in READERS.items() if n not in SLOW or rng.random() < 0.125}
            assert not list(answers(plan, subject, chosen)), (name, kind, content)
    kinds = {change.__name__ for change in (*TREES, *TEXTS)}
    assert kinds <= found.keys() and found["a plan"] > found["refused"] / 20
    return found


@pytest.mark.ci
def test_damaged_files(tmp_path: Path) -> None:
    assert damage(tmp_path / "plan.json", 1, 6).total() > 200


@pytest.mark.slow
def test_many_damaged_files(tmp_path: Path) -> None:
    found = damage(tmp_path / "plan.json", 2, 100)
    assert found["refused"] + found["a plan"] >= 1500
