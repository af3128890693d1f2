"""Fine-tuning: what is learnt is in the graph, gates are drawn to zero, what is left of a network
answers as the whole one does on the average, and what it learns from that one is what it says."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax

from pipeline.errors import ThimbleError
from pipeline.models.layers import InvertedResidual, classifier, convolution
from pipeline.pruning.couplings import Couplings, couplings
from pipeline.pruning.distilled import DistillationPhase
from pipeline.pruning.tuned import Tuned
from pipeline.pruning.width import Width
from pipeline.training.environment import Run
from tests.pruning.networks import DATA, MODEL, weights
from tests.pruning.test_couplings import graph_of

IMAGES = torch.rand(16, 3, 8, 8, generator=torch.Generator().manual_seed(1)) * 255
FRAMES = IMAGES.permute(0, 2, 3, 1)
LABELS = torch.arange(16) % 4


def network() -> Couplings:
    torch.manual_seed(0)
    blocks = [convolution(3, 8), InvertedResidual(8, 8, 3, 1, 2, "relu6", 2), classifier(8, 4)]
    return couplings(graph_of(nn.Sequential(*blocks), (3, 8, 8)))


def near(one: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def trained(tuned: Tuned, steps: int) -> Tuned:
    tuned.train()
    optimizer = torch.optim.SGD(tuned.parameters(), 0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.autograd.backward(cross_entropy(tuned(IMAGES), LABELS))
        optimizer.step()
    return tuned.eval()


@torch.no_grad()
def test_it_begins_as_the_graph_and_goes_back_to_it() -> None:
    found = network()
    for penalties in (None, {3: 0.1}):
        tuned = Tuned(found, IMAGES, penalties).eval()
        near(tuned(IMAGES), found.graph.evaluate(FRAMES))
        near(tuned.graph().evaluate(FRAMES), found.graph.evaluate(FRAMES))


def test_what_was_learnt_is_in_the_graph() -> None:
    found = network()
    tuned = trained(Tuned(found, IMAGES, {found.groups[0].units[0]: 1.0}), 8)
    with torch.no_grad():
        expected, before = tuned(IMAGES), found.graph.evaluate(FRAMES)
        assert cross_entropy(expected, LABELS) < cross_entropy(before, LABELS)
        near(tuned.graph().evaluate(FRAMES), expected)


def test_gates_are_drawn_to_zero_where_they_are_to_be() -> None:
    """0.05 a step at a slope of 1; the others stay near 1."""
    found = network()
    aimed = dict.fromkeys(found.groups[1].units, 1.0)
    gates = trained(Tuned(found, IMAGES, aimed), 8).gates
    assert gates is not None
    others = torch.ones(found.units, dtype=torch.bool)
    others[list(aimed)] = False
    assert (gates[list(aimed)] < 0.85).all() and (gates[others] > 0.85).all()


def test_pixels_alone_are_not_normalized() -> None:
    """A squeeze-and-excite gate sees one value of each channel."""
    tuned = Tuned(network(), IMAGES)
    normed = [layer.norm is not None for layer in tuned.layers if hasattr(layer, "norm")]
    assert normed.count(False) == 3 and normed.count(True) == 4


# --- learning from the network before pruning

SCORES = torch.tensor([[2.0, -1.0], [0.5, 0.0], [-3.0, 1.0]])
TAUGHT = torch.tensor([[1.0, 0.0], [-1.0, 2.0], [0.0, 4.0]])
THREE, THEIRS = torch.eye(3), torch.tensor([0, 1, 1])


def scoring(scores: torch.Tensor) -> nn.Module:
    """Scores of the images 0, 1 and 2."""
    made = nn.Linear(3, 2, bias=False)
    made.weight.data = scores.T.contiguous()
    return made


PHASE = DistillationPhase("tune", 0, 1, 0.1, 3, 0.9, 0.0, 0.25, 2.0, scoring(TAUGHT))


def loss(label_share: float) -> torch.Tensor:
    return replace(PHASE, label_share=label_share).loss(scoring(SCORES), THREE, THEIRS)


def test_labels_alone_and_the_teacher_alone() -> None:
    assert torch.isclose(loss(1.0), cross_entropy(SCORES, THEIRS))
    shares = torch.tensor([[1, 0], [-1, 2], [0, 4]]).div(2).softmax(1)
    said = -(shares * log_softmax(SCORES / 2, 1)).sum(1).mean() * 4
    assert torch.isclose(loss(0.0), said)
    assert torch.isclose(loss(0.25), 0.25 * loss(1.0) + 0.75 * said)


def test_the_teacher_is_no_part_of_what_tells_phases_apart() -> None:
    """Checkpoints are found by it in another process, where objects have other addresses."""
    assert repr(PHASE) == repr(replace(PHASE, teacher=scoring(SCORES)))
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
