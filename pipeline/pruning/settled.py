"""A network without some of its channels, whose others are as strong as they were.

What a channel that goes had added to the next layer's sums is missing from then on, its mean first
of all; each layer after it makes that worse, until nothing is recognised and a training has to
begin from there. So each layer's weights are scaled, and its biases moved, until its sums have the
mean and the variance that they had in the whole network (the means: Nagel et al. 2019, "Data-free
quantization through weight equalization and bias correction"; here both, and from images).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph
from pipeline.pruning.couplings import Couplings, Mask
from pipeline.pruning.cut import cut

LEAST_VARIANCE = 1e-5
"""That is told from none, as PyTorch's normalizations have it."""


@torch.no_grad()
def settled(found: Couplings, kept: Mask, frames: Tensor) -> FloatGraph:
    """``cut``, with the statistics of the whole graph on ``frames`` (n, *input shape). Activations
    are dropped after their last reader, as by ``FloatGraph.each``."""
    whole, small = found.graph, cut(found, kept)
    before, after = {whole.input: frames}, {small.input: frames}
    last = {name: index for index, node in enumerate(whole.nodes) for name in node.inputs}
    made = []
    for index, (one, node) in enumerate(zip(whole.nodes, small.nodes, strict=True)):
        given = [before[name] for name in one.inputs]
        left = [after[name] for name in node.inputs]
        if isinstance(one, nodes.Weighted) and isinstance(node, nodes.Weighted):
            makes = torch.from_numpy(kept[found.channels[one.output].numbers])
            node = _alike(node, node.compute(left), one.compute(given)[..., makes])
        before[one.output], after[node.output] = one.evaluate(given), node.evaluate(left)
        made.append(node)
        for name in {*one.inputs, one.output}:
            if last.get(name, -1) <= index:
                del before[name], after[name]
    return replace(small, nodes=tuple(made))


def _alike(node: nodes.Weighted, sums: Tensor, wanted: Tensor) -> nodes.Weighted:
    """``node``, which makes ``sums`` (…, channels), with the mean and variance of ``wanted``."""
    axes = tuple(range(sums.ndim - 1))
    variance, mean = torch.var_mean(sums, axes, correction=0)
    variance_wanted, mean_wanted = torch.var_mean(wanted, axes, correction=0)
    factor = ((variance_wanted + LEAST_VARIANCE) / (variance + LEAST_VARIANCE)).sqrt()
    return node.scaled(factor.double().numpy(), (mean_wanted - factor * mean).double().numpy())
