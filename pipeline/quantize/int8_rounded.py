"""A float graph that computes with int8's roundings and can be trained.

Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference (2018), section 3: weights and activations are rounded on the way forward; on the way
back rounding counts as the identity (Bengio et al. 2013), and what is clipped has no gradient.
Batch norms are part of the weights already, and the activations' ranges do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import nn

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.scales import ABOVE, WEIGHT_LIMIT, weight_steps


class Rounded(nn.Module):
    """``source`` on weights and activations that are rounded as int8 will round them."""

    def __init__(self, source: FloatGraph, affines: Mapping[str, Affine]) -> None:
        super().__init__()
        self.source, self.affines = source, affines
        self.scores = nodes.scores(source)
        self.layers = nn.ModuleList(
            self.layer(node) if isinstance(node, nodes.Weighted) else nn.Identity()
            for node in source.nodes
        )

    def layer(self, node: nodes.Weighted) -> RoundedLayer:
        return RoundedLayer(node, self.affines)

    def settle(self, frames: torch.Tensor) -> None:
        """Choose anew what depends on the weights of now; ``frames`` as ``forward`` takes them."""

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """(n, h, w, c) in 0…255 -> (n, classes), before a softmax."""
        source, entry = self.source, self.affines[self.source.input]
        raw = frames.reshape(-1, *source.shapes[source.input])

        def evaluate(index: int, inputs: list[torch.Tensor]) -> torch.Tensor:
            node, layer = source.nodes[index], self.layers[index]
            real = layer(*inputs) if isinstance(layer, RoundedLayer) else node.evaluate(inputs)
            affine = self.affines[node.output]
            return torch.fake_quantize_per_tensor_affine(
                real, affine.scale, affine.zero_point, -128, 127
            )

        real = entry.scale * (raw - 128 - entry.zero_point)
        return source.activation(self.scores, real, evaluate).flatten(1)

    def graph(self) -> FloatGraph:
        """``source`` with what was learnt."""
        pairs = zip(self.source.nodes, self.layers, strict=True)
        return replace(
            self.source,
            nodes=tuple(
                layer.node() if isinstance(layer, RoundedLayer) else node for node, layer in pairs
            ),
        )


class RoundedLayer(nn.Module):
    """A node's weights and biases: those it came with, and a learnt change in units that suit each
    channel, so that one rate suits all layers. Zero weights, as pruning makes them, stay zero, and
    none becomes so large that its step is above the output's: ``resolvable`` began so."""

    def __init__(self, node: nodes.Weighted, affines: Mapping[str, Affine]) -> None:
        super().__init__()
        self.source = node
        self.scale_in = affines[node.inputs[0]].scale
        start = torch.from_numpy(node.weights).float()
        self.start = start, torch.from_numpy(node.bias).float()
        largest = start.abs().flatten(1).amax(1).reshape(-1, *(1,) * (start.ndim - 1))
        self.units = largest * (start != 0), WEIGHT_LIMIT * affines[node.output].scale
        between = (1 + ABOVE) / 2  # room for float32 on both sides
        self.limit = WEIGHT_LIMIT * affines[node.output].scale / (between * self.scale_in)
        self.changes = nn.ParameterList(torch.zeros_like(each) for each in self.start)

    def parameters_now(self) -> tuple[torch.Tensor, torch.Tensor]:
        (weights, bias), (weight, offset) = self.start, self.units
        learnt = (weights + weight * self.changes[0]).clamp(-self.limit, self.limit)
        return learnt, bias + offset * self.changes[1]

    def node(self) -> nodes.Weighted:
        weights, bias = (each.detach().double().numpy() for each in self.parameters_now())
        return replace(self.source, weights=weights, bias=bias)

    def rounded(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Weights, biases, and the real value of a unit of each channel's weights."""
        weights, bias = self.parameters_now()
        now = self.node()
        steps = torch.from_numpy(weight_steps(now.weights, now.bias, self.scale_in)).float()
        zeros = torch.zeros(len(steps), dtype=torch.int32)
        rounded = torch.fake_quantize_per_channel_affine(
            weights, steps, zeros, 0, -WEIGHT_LIMIT, WEIGHT_LIMIT
        )
        return rounded, bias, steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, bias, _ = self.rounded()
        return self.source.clipped(self.source.applied(x, weights, bias))
