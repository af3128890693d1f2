"""A plan is proved once; what was edited since is proved again, and what is damaged is one line."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import PlanError, ThimbleError
from pipeline.plan import proof, serialize
from pipeline.plan.fit import of_board
from pipeline.plan.verify import Report
from pipeline.plan.vocabulary import Plan
from tests.plan.fixtures import channel_partial, herringbone
from tests.strategies.chains import Ordinary, board, mnist


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that ``verify`` was asked for."""
    seen: list[Plan] = []
    real = proof.verify

    def counted(plan: Plan, graph: object) -> Report:
        seen.append(plan)
        return real(plan, graph)  # type: ignore[arg-type]

    monkeypatch.setattr(proof, "verify", counted)
    return seen


def test_what_changed_is_proved_anew(calls: list[Plan], tmp_path: Path) -> None:
    plan, graph = channel_partial(np.random.default_rng(0))
    path, found = tmp_path / "proof.json", proof.prove(plan, graph)
    proof.save(path, found, plan, graph)
    serialize.save(plan, tmp_path / "plan.json")
    assert proof.proved(path, serialize.load(tmp_path / "plan.json"), graph) == found
    assert len(calls) == 1
    assert proof.proved(path, replace(plan, strategy="by hand, and again"), graph)
    assert proof.proved(path, plan, channel_partial(np.random.default_rng(1))[1])
    assert len(calls) == 3
    wrong = replace(plan, tracks=tuple(replace(t, steps=t.steps * 2) for t in plan.tracks))
    with pytest.raises(PlanError):
        proof.proved(path, wrong, graph)


def test_memories_are_those_of_the_board_that_was_looked_at(tmp_path: Path) -> None:
    """A plan that says that flash can be written is right, on another board."""
    plan, graph = channel_partial(np.random.default_rng(0))
    path = tmp_path / "proof.json"
    proof.save(path, proof.prove(plan, graph), plan, graph)
    writable = tuple(replace(m, kind="ram") for m in plan.memories)
    with pytest.raises(PlanError, match="other memories than the plan: run stage schedule again"):
        proof.proved(path, replace(plan, memories=writable), graph)


@pytest.mark.parametrize("content", ["", "[]", "{}", "null", '{"memories": 3}', "[" * 100_000])
def test_a_damaged_proof_is_one_line(content: str, tmp_path: Path) -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    path = tmp_path / "proof.json"
    path.write_text(content)
    with pytest.raises(ThimbleError):
        proof.proved(path, plan, graph)


def test_a_plan_keeps_to_the_boards_memories() -> None:
    graph, uno = mnist().graph(), board(streams=False)
    plan = Ordinary().plan(graph, uno)
    of_board(plan, uno)
    for changed in ({"kind": "rom"}, {"granule_bytes": 4}, {"name": "another"}):
        first = replace(plan.memories[0], **changed)  # type: ignore[arg-type]
        buffers = tuple(
            replace(b, memory=first.name) if b.memory == plan.memories[0].name else b
            for b in plan.buffers
        )
        other = replace(plan, memories=(first, *plan.memories[1:]), buffers=buffers)
        with pytest.raises(PlanError, match=f"the plan takes {first.name} for"):
            of_board(other, uno)
