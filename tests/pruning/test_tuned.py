from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from pipeline.importers.float_graph import FloatGraph
from pipeline.models.layers import InvertedResidual, classifier, convolution
from pipeline.pruning.couplings import Couplings, couplings
from pipeline.pruning.tuned import Tuned
from tests.pruning.test_couplings import graph_of

IMAGES = torch.rand(16, 3, 8, 8, generator=torch.Generator().manual_seed(1)) * 255
LABELS = torch.arange(16) % 4


def network() -> Couplings:
    torch.manual_seed(0)
    blocks = [convolution(3, 8), InvertedResidual(8, 8, 3, 1, 2, "relu6", 2), classifier(8, 4)]
    return couplings(graph_of(nn.Sequential(*blocks), (3, 8, 8)))


def outputs(graph: FloatGraph) -> torch.Tensor:
    return graph.outputs(IMAGES.permute(0, 2, 3, 1))


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
        torch.testing.assert_close(tuned(IMAGES), outputs(found.graph), rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(
            outputs(tuned.graph()), outputs(found.graph), rtol=1e-3, atol=1e-3
        )


def test_what_was_learnt_is_in_the_graph() -> None:
    found = network()
    unit = found.groups[0].units[0]
    tuned = trained(Tuned(found, IMAGES, {unit: 1.0}), 8)
    with torch.no_grad():
        expected = tuned(IMAGES)
        assert cross_entropy(expected, LABELS) < cross_entropy(outputs(found.graph), LABELS)
        torch.testing.assert_close(outputs(tuned.graph()), expected, rtol=1e-3, atol=1e-3)


def test_gates_are_drawn_to_zero_where_they_are_to_be() -> None:
    """0.05 a step at a slope of 1; the others stay near 1."""
    found = network()
    aimed = dict.fromkeys(found.groups[1].units, 1.0)
    gates = trained(Tuned(found, IMAGES, aimed), 8).gates
    assert gates is not None
    near = torch.ones(found.units, dtype=torch.bool)
    near[list(aimed)] = False
    assert (gates[list(aimed)] < 0.85).all() and (gates[near] > 0.85).all()


def test_pixels_alone_are_not_normalized() -> None:
    """A squeeze-and-excite gate sees one value of each channel."""
    tuned = Tuned(network(), IMAGES)
    normed = [layer.norm is not None for layer in tuned.layers if hasattr(layer, "norm")]
    assert normed.count(False) == 3 and normed.count(True) == 4
