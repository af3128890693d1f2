"""No single mistake that changes an output under any timing gets past the verifier."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.fixtures import FIXTURES
from tests.plan.mutations import accepted, changes_output, mutant, subject

MUTANTS = {**dict.fromkeys(FIXTURES, 300), "larger": 40}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_harmful_mutant_is_rejected(name: str) -> None:
    rng = np.random.default_rng(7)
    plan, graph, frames, wanted = subject(name, rng)
    rejected = 0
    for _ in range(MUTANTS[name]):
        kind, changed = mutant(rng, plan)
        if not accepted(changed, graph):
            rejected += 1
            continue
        for frame, right in zip(frames, wanted, strict=True):
            assert not changes_output(name, changed, graph, frame, right), f"{kind}: {changed}"
    assert MUTANTS[name] // 2 < rejected < MUTANTS[name], "the mutations do not test anything"
