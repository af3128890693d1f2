"""What is learned from the network before pruning is what that one says, and no labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax

from pipeline.errors import ThimbleError
from pipeline.pruning.taught import TaughtPhase
from pipeline.pruning.width import Width
from pipeline.training.environment import Run
from tests.pruning.networks import DATA, MODEL, weights

IMAGES, LABELS = torch.eye(3), torch.tensor([0, 1, 1])
SCORES = torch.tensor([[2.0, -1.0], [0.5, 0.0], [-3.0, 1.0]])
TAUGHT = torch.tensor([[1.0, 0.0], [-1.0, 2.0], [0.0, 4.0]])


def network(scores: torch.Tensor) -> nn.Module:
    """Scores of the images 0, 1 and 2."""
    made = nn.Linear(3, 2, bias=False)
    made.weight.data = scores.T.contiguous()
    return made


PHASE = TaughtPhase("tune", 0, 1, 0.1, 3, 0.9, 0.0, 0.25, 2.0, network(TAUGHT))


def loss(label_share: float, scores: torch.Tensor = SCORES) -> torch.Tensor:
    return replace(PHASE, label_share=label_share).loss(network(scores), IMAGES, LABELS)


def test_labels_alone_and_the_teacher_alone() -> None:
    assert torch.isclose(loss(1.0), cross_entropy(SCORES, LABELS))
    shares = torch.tensor([[1, 0], [-1, 2], [0, 4]]).div(2).softmax(1)
    said = -(shares * log_softmax(SCORES / 2, 1)).sum(1).mean() * 4
    assert torch.isclose(loss(0.0), said)
    assert torch.isclose(loss(0.25), 0.25 * loss(1.0) + 0.75 * said)


def test_who_says_the_same_has_nothing_to_learn() -> None:
    student = network(TAUGHT + 5.0)
    torch.autograd.backward(replace(PHASE, label_share=0.0).loss(student, IMAGES, LABELS))
    assert student.weight.grad is not None
    assert student.weight.grad.abs().max() < 1e-6


def test_the_teacher_is_no_part_of_what_tells_phases_apart() -> None:
    """Checkpoints are found by it in another process, where objects have other addresses."""
    assert repr(PHASE) == repr(replace(PHASE, teacher=network(SCORES)))
    assert repr(PHASE) != repr(replace(PHASE, temperature=3.0))


@pytest.mark.ci
def test_pruning_takes_it() -> None:
    method = Width(width=0.5, epochs=1, batch=32)
    alone, both = (
        replace(method, label_share=share).prune(MODEL, weights(), DATA, Run(1)).weights
        for share in (1.0, 0.5)
    )
    assert alone.keys() == both.keys()
    assert any(not np.array_equal(alone[name], both[name]) for name in alone)


@pytest.mark.parametrize("wrong", [{"label_share": 1.5}, {"label_share": -1}, {"temperature": 0}])
def test_what_is_no_share_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ThimbleError, match=r"prune\.label_share=.* between 0 and 1, prune\.temp"):
        Width(width=0.5, **wrong)  # type: ignore[arg-type]
