"""A float graph that can be trained further, with gates on its channels.

Batch normalizations were folded into the weights when the network was imported. Training wants
them back: each convolution gets one whose statistics and factors leave its results as they are, and
filters of the length that initial ones have (He et al. 2015), so that the usual rates are right.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph, Node
from pipeline.pruning.couplings import Couplings


class Tuned(nn.Module):
    """The graph of ``found``: images (n, c, h, w) in 0…255 to scores (n, classes).

    Args:
        found: the graph, and which of its channels are tied.
        frames: images that the normalizations' statistics are taken from.
        penalties: of units, how strongly their gates are drawn to zero. Gates are trained where
            there are any, one for all channels of a unit, in front of the activation.
    """

    def __init__(
        self, found: Couplings, frames: Tensor, penalties: Mapping[int, float] | None = None
    ) -> None:
        super().__init__()
        self.source = found.graph
        self.gates: nn.Parameter | None = None
        self.scores = nodes.scores(self.source)
        self.layers = nn.ModuleList(
            TunedLayer(node, self.source.shapes[node.output])
            if isinstance(node, nodes.Weighted)
            else nn.Identity()
            for node in self.source.nodes
        )
        with torch.no_grad():
            self.eval().scored(frames, settling=True)
        if penalties is None:
            return
        self.gates = nn.Parameter(torch.ones(found.units))
        drawn = torch.zeros(found.units)
        drawn[list(penalties)] = torch.tensor(list(penalties.values()))
        self.penalties = drawn
        for node, layer in zip(self.source.nodes, self.layers, strict=True):
            made = found.layers.get(node.name)
            if isinstance(layer, TunedLayer) and made is not None and _mixes(node):
                layer.units = torch.from_numpy(made)

    def forward(self, images: Tensor) -> Tensor:
        return self.scored(images)

    def scored(self, images: Tensor, settling: bool = False) -> Tensor:
        source = self.source
        shape = source.shapes[source.input]
        gates = self.drawn()

        def evaluate(index: int, inputs: list[Tensor]) -> Tensor:
            layer = self.layers[index]
            if not isinstance(layer, TunedLayer):
                return source.nodes[index].evaluate(inputs)
            if settling:
                layer.settle(inputs[0])
            result: Tensor = layer(inputs[0], gates)
            return result

        frames = images.permute(0, 2, 3, 1).reshape(-1, *shape)
        return source.activation(self.scores, frames, evaluate).flatten(1)

    def drawn(self) -> Tensor | None:
        """Return the gates; the slope of an L1 norm joins their gradient."""
        if self.gates is None:
            return None
        gates: Tensor = self.gates * 1
        if gates.requires_grad:
            slope = self.penalties * self.gates.detach().sign()
            gates.register_hook(lambda gradient: gradient + slope)  # type: ignore[no-untyped-call]
        return gates

    def graph(self) -> FloatGraph:
        """``source`` with what was learnt; normalizations and gates are in the weights."""
        gates = None if self.gates is None else self.gates.detach()
        pairs = zip(self.source.nodes, self.layers, strict=True)
        made = tuple(
            layer.node(gates) if isinstance(layer, TunedLayer) else node for node, layer in pairs
        )
        return replace(self.source, nodes=made)


class TunedLayer(nn.Module):
    """A convolution or linear layer; of images with more than a pixel, normalized."""

    def __init__(self, node: nodes.Weighted, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.source, self.units = node, torch.empty(0, dtype=torch.int64)
        weights = torch.from_numpy(np.ascontiguousarray(node.weights)).float()
        self.lengths = torch.ones(len(weights))
        self.norm = None
        if len(shape) == 3 and shape[0] * shape[1] > 1:
            lengths = weights.flatten(1).norm(dim=1) / sqrt(2)
            self.lengths = torch.where(lengths > 0, lengths, 1.0)
            self.norm = nn.BatchNorm2d(len(weights))
        self.weight = nn.Parameter(weights / self.lengths.reshape(-1, *[1] * (weights.ndim - 1)))
        bias = torch.from_numpy(np.ascontiguousarray(node.bias)).float()
        self.bias = nn.Parameter(bias) if self.norm is None else None
        self.start = bias

    def settle(self, x: Tensor) -> None:
        """Choose statistics and factors so that the results for ``x`` are those of ``source``."""
        if self.norm is None:
            return
        sums = self.source.applied(x, self.weight, torch.zeros_like(self.start))
        variance, mean = torch.var_mean(sums, dim=(0, 1, 2), correction=0)
        self.norm.running_mean, self.norm.running_var = mean, variance
        self.norm.weight.copy_((variance + self.norm.eps).sqrt() * self.lengths)
        self.norm.bias.copy_(mean * self.lengths + self.start)

    def forward(self, x: Tensor, gates: Tensor | None) -> Tensor:
        if self.norm is None:
            assert self.bias is not None
            y = self.source.applied(x, self.weight, self.bias)
        else:
            sums = self.source.applied(x, self.weight, torch.zeros_like(self.start))
            y = nodes.channels_last(self.norm(nodes.channels_first(sums)))
        if gates is not None and len(self.units):
            y = y * gates[self.units]
        return self.source.clipped(y)

    def node(self, gates: Tensor | None) -> nodes.Weighted:
        factor, offset = torch.ones_like(self.start), self.start
        if self.norm is None:
            assert self.bias is not None
            offset = self.bias
        else:
            assert self.norm.running_mean is not None and self.norm.running_var is not None
            factor = self.norm.weight / (self.norm.running_var + self.norm.eps).sqrt()
            offset = self.norm.bias - self.norm.running_mean * factor
        plain = replace(self.source, weights=_floats(self.weight), bias=np.zeros(len(factor)))
        scaled = plain.scaled(_floats(factor), _floats(offset))
        if gates is None or not len(self.units):
            return scaled
        return scaled.scaled(_floats(gates[self.units]), np.zeros(len(factor)))


def _floats(values: Tensor) -> nodes.Floats:
    return values.detach().double().numpy()


def _mixes(node: Node) -> bool:
    """Check whether it makes channels of its own: those of a convolution in groups go with its
    inputs, which have the gate."""
    return not (isinstance(node, nodes.Convolution) and node.groups > 1)
