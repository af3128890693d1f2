"""Biases that make up for the mean error of rounded weights and inputs.

With W and x rounded to W_q and x_q, sums are off by W_q E[x_q] - W E[x] in the mean, which is taken
from the biases: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias
Correction (2019), section 4.2, with means over calibration frames. Layers are linear, so that one
mean input of each is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import torch

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.scales import stored_weights


@torch.no_grad()
def corrected(
    graph: FloatGraph, affines: Mapping[str, Affine], batches: Callable[[], Iterable[torch.Tensor]]
) -> FloatGraph:
    """``graph`` with biases that bring the mean of each output channel back.

    Args:
        affines: of every activation.
        batches: called for one walk; frames (n, *input shape) float32.
    """
    read = {node.inputs[0] for node in graph.nodes if isinstance(node, nodes.Weighted)}
    means = {name: torch.zeros(2, *graph.shapes[name], dtype=torch.float64) for name in read}
    count = 0
    for frames in batches():
        count += len(frames)
        for name, values in graph.walk(frames):
            if name in read:
                both = torch.stack([values, rounded(values, affines[name])])
                means[name] += both.sum(1, dtype=torch.float64)
    fixed = tuple(
        unbiased(node, affines[node.inputs[0]], *(means[node.inputs[0]] / count))
        if isinstance(node, nodes.Weighted) and node.steps is None
        else node
        for node in graph.nodes
    )
    return replace(graph, nodes=fixed)


def rounded(values: torch.Tensor, affine: Affine) -> torch.Tensor:
    """Compute the real values that the integers have for them."""
    ends, zero = affine.ends, affine.zero_point
    return torch.fake_quantize_per_tensor_affine(values, affine.scale, zero, *ends)


def unbiased(
    node: nodes.Weighted, affine: Affine, exact: torch.Tensor, stored: torch.Tensor
) -> nodes.Weighted:
    """``exact`` and ``stored`` are the mean input (*input shape) and that of its integers."""
    integers, steps = stored_weights(node, affine.scale)
    weights = torch.from_numpy(integers * steps.reshape(-1, *(1,) * (integers.ndim - 1)))
    bias = torch.from_numpy(node.bias)
    error = node.applied(stored[None], weights, bias) - node.compute([exact[None]])
    return replace(node, bias=node.bias - error.flatten(0, -2).mean(0).numpy())
