"""Hand-written attacks: each is refused, for the reason that it was written for, and soon."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Affine, PlanError
from tests.plan import adversarial_access, adversarial_tracks
from tests.plan.adversarial import INPUTS, halves, layer, right, sums
from tests.plan.attacks import ATTACKS
from tests.plan.bounds import OverBudgetError, bounded
from tests.plan.outcomes import differs
from tests.strategies.chains import board

SOUND = {
    "a layer": layer,
    "in two halves of its sums": halves,
    "sums of a step": lambda: halves(sums("acc", 16, 16, 3)),
    "a stream": lambda: adversarial_access.four_moves(0, 1, 2, 3),
    "two tracks": adversarial_tracks.fetched,
    "two frames": lambda: (adversarial_tracks.two_frames(), layer()[1]),
    "in place": lambda: adversarial_access.looked_up(Affine(14, (2,))),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_attacks_spoil_is_accepted(name: str) -> None:
    with bounded():
        verify(*SOUND[name]())


@pytest.mark.parametrize("name", [name for name, each in ATTACKS.items() if each.message])
def test_attack_is_refused(name: str) -> None:
    attack = ATTACKS[name]
    with pytest.raises(PlanError) as refusal, bounded():
        verify(*attack.make())
    assert str(attack.message) in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", [name for name, each in ATTACKS.items() if not each.message])
def test_what_does_nothing_is_refused_or_does_nothing(name: str) -> None:
    with bounded():
        try:
            plan, graph = ATTACKS[name].make()
            verify(plan, graph)
        except PlanError:
            return
        assert not differs(plan, graph, INPUTS, right(graph))
        assert "nn_invoke" in generate(graph, plan, board(streams=False), {})["model.h"]


def test_attacks_are_many() -> None:
    assert len(ATTACKS) > 240


@pytest.mark.ci
def test_what_has_no_end_is_ended() -> None:
    def endless() -> None:
        while True:
            sum([1, 2].__iter__() for _ in ())

    with pytest.raises(OverBudgetError), bounded():
        endless()
    with pytest.raises(MemoryError), bounded():
        np.ones(1 << 40)
