"""How float graphs and integer graphs are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph, Node
from pipeline.importers.float_passes import simplified
from pipeline.importers.lower import PROBABILITY, range_affine
from pipeline.importers.torch_export import exported

Floats = npt.NDArray[np.float64]


def example(shape: tuple[int, ...], count: int = 16, seed: int = 0) -> torch.Tensor:
    """(count, *shape), normal."""
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def ours(x: torch.Tensor) -> torch.Tensor:
    """The source's layout to ours: (n, c, h, w) -> (n, h, w, c)."""
    return x.permute(0, 2, 3, 1) if x.ndim == 4 else x


def shaken(module: nn.Module, seed: int = 0) -> nn.Module:
    """Batch norms with statistics and factors that are not 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
            count = layer.num_features
            layer.running_mean = torch.randn(count, generator=generator)
            layer.running_var = torch.rand(count, generator=generator) + 0.5
            if layer.affine:
                layer.weight.data = torch.rand(count, generator=generator) + 0.5
                layer.bias.data = torch.randn(count, generator=generator)
    return module.eval()


def check_float(module: nn.Module, x: torch.Tensor) -> FloatGraph:
    """The imported network gives what ``module`` gives for each frame, before and after the
    passes; returns the simplified one."""
    graph = exported("net", module, x[:1])
    with torch.no_grad():
        expected = torch.cat([ours(module(frame[None].clone())).double() for frame in x])
    small = simplified(graph)
    for each in (graph, small):
        found = each.outputs(ours(x).double())
        torch.testing.assert_close(found, expected.reshape(found.shape), rtol=1e-4, atol=1e-4)
    return small


def observed(graph: FloatGraph, x: torch.Tensor) -> dict[str, Affine]:
    """A quantization for each activation from what it holds; pools and the like keep theirs."""
    found = {
        name: range_affine(float(values.min()), float(values.max()))
        for name, values in graph.walk(x)
    }
    for node in graph.nodes:
        if isinstance(node, nodes.SoftmaxOver):
            found[node.output] = PROBABILITY
        if node.keeps and len(node.inputs) == 1:
            found[node.output] = found[node.inputs[0]]
    return found


def real(graph: Graph, name: str, stored: IntArray) -> Floats:
    tensor = graph.tensors[name]
    return np.asarray(tensor.scale[0] * (stored - tensor.zero_point))


def stored(graph: Graph, name: str, values: Floats) -> IntArray:
    """Real values as ``name`` stores them, rounded once."""
    tensor = graph.tensors[name]
    return np.clip(np.rint(values / tensor.scale[0]) + tensor.zero_point, -128, 127).astype(int)


def as_stored(graph: Graph, node: Node) -> Node:
    """``node`` with the weights and constants that the integer graph really has."""
    if isinstance(node, nodes.Weighted):
        weights, bias = (f"{node.name}.{part}" for part in ("weight", "bias"))
        steps, unit = (np.array(graph.tensors[name].scale) for name in (weights, bias))
        column = steps.reshape(-1, *(1,) * (node.weights.ndim - 1))
        return replace(
            node, weights=graph.constants[weights] * column, bias=graph.constants[bias] * unit
        )
    if isinstance(node, nodes.Binary) and node.constant is not None:
        name = f"{node.name}.constant"
        return replace(node, constant=real(graph, name, graph.constants[name]))
    return node


def worst_step(network: FloatGraph, graph: Graph, frames: IntArray) -> dict[str, int]:
    """For each operator the largest difference, in units of its output, between its integers and
    the real result of *its own integer inputs*, rounded once."""
    values = graph.run(frames)
    worst = {}
    for node in network.nodes:
        inputs = [torch.from_numpy(real(graph, name, values[name])) for name in node.inputs]
        exact = as_stored(graph, node).evaluate(inputs).numpy()
        difference = np.abs(values[node.output] - stored(graph, node.output, exact))
        worst[node.name] = int(difference.max())
    return worst
