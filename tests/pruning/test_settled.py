"""What is left of a network answers as the whole one does, on the average."""

from __future__ import annotations

import torch

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph
from pipeline.pruning.cut import cut
from pipeline.pruning.settled import settled
from tests.pruning.test_tuned import IMAGES, network

FRAMES = IMAGES.permute(0, 2, 3, 1)


def sums(graph: FloatGraph) -> dict[str, torch.Tensor]:
    """Of each layer with weights, (…, channels)."""
    values, found = {graph.input: FRAMES}, {}
    for node in graph.nodes:
        given = [values[name] for name in node.inputs]
        if isinstance(node, nodes.Weighted):
            found[node.name] = node.compute(given)
        values[node.output] = node.evaluate(given)
    return found


def test_means_and_variances_stay() -> None:
    found = network()
    kept = found.everything()
    for group in found.groups:
        kept[list(group.units[::3])] = False
    small = settled(found, kept, FRAMES)
    before, after, unsettled = sums(found.graph), sums(small), sums(cut(found, kept))
    moved = 0.0
    for name, numbers in found.layers.items():
        makes, axes = torch.from_numpy(kept[numbers]), tuple(range(before[name].ndim - 1))
        wanted = torch.var_mean(before[name][..., makes], axes, correction=0)
        for one, other in zip(torch.var_mean(after[name], axes, correction=0), wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)
        moved = max(moved, float((unsettled[name].mean(axes) - wanted[1]).abs().max()))
    assert moved > 0.1


def test_a_whole_network_stays_as_it_is() -> None:
    found = network()
    same = settled(found, found.everything(), FRAMES)
    torch.testing.assert_close(
        same.outputs(FRAMES), found.graph.outputs(FRAMES), rtol=1e-3, atol=1e-3
    )
