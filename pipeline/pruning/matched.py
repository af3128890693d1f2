"""A network without some of its channels, whose others are as strong as they were.

What a channel that goes had added to the next layer's sums is missing from then on, its mean first
of all; each layer after it makes that worse, until nothing is recognised and a training has to
begin from there. So each layer's weights are scaled, and its biases moved, until its sums have the
mean and the variance that they had in the whole network (the means: Nagel et al. 2019, "Data-free
quantization through weight equalization and bias correction"; here both, and from images).
"""

from dataclasses import replace

import torch
from torch import Tensor

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph, Node
from pipeline.pruning.couplings import Couplings, Mask
from pipeline.pruning.cut import cut

LEAST_VARIANCE = 1e-5
"""Least variance that is told from none, as PyTorch's normalizations have it."""


@torch.no_grad()
def matched(found: Couplings, kept: Mask, frames: Tensor) -> FloatGraph:
    """``cut``, with the statistics of the whole graph on ``frames`` (n, *input shape).

    Both are computed node by node, each node of the whole one just before its smaller self.
    """
    whole, small = found.graph, cut(found, kept)
    made: list[Node] = []
    wanted: list[Tensor] = []

    def of_whole(index: int, inputs: list[Tensor]) -> Tensor:
        node = whole.nodes[index]
        if isinstance(node, nodes.Weighted):
            makes = torch.from_numpy(kept[found.channels[node.output].numbers])
            wanted.append(node.compute(inputs)[..., makes])
        return node.evaluate(inputs)

    def of_small(index: int, inputs: list[Tensor]) -> Tensor:
        node = small.nodes[index]
        if isinstance(node, nodes.Weighted):
            node = _alike(node, node.compute(inputs), wanted.pop())
        made.append(node)
        return node.evaluate(inputs)

    for _ in zip(whole.each(frames, of_whole), small.each(frames, of_small), strict=True):
        pass
    return replace(small, nodes=tuple(made))


def _alike(node: nodes.Weighted, sums: Tensor, wanted: Tensor) -> nodes.Weighted:
    """``node``, which makes ``sums`` (…, channels), with the mean and variance of ``wanted``."""
    axes = tuple(range(sums.ndim - 1))
    variance, mean = torch.var_mean(sums, axes, correction=0)
    variance_wanted, mean_wanted = torch.var_mean(wanted, axes, correction=0)
    factor = ((variance_wanted + LEAST_VARIANCE) / (variance + LEAST_VARIANCE)).sqrt()
    return node.scaled(factor.double().numpy(), (mean_wanted - factor * mean).double().numpy())
