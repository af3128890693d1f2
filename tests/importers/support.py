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
from pipeline.importers.lower import PROBABILITY, lower, range_affine
from pipeline.importers.torch_export import exported

Floats = npt.NDArray[np.float64]


def example(shape: tuple[int, ...], count: int = 16, seed: int = 0) -> torch.Tensor:
    """(count, *shape), normal."""
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def ours(x: torch.Tensor, graph: FloatGraph | None = None) -> torch.Tensor:
    """The source's layout to ours: (n, c, h, w) -> (n, h, w, c), and, where ``graph`` takes
    signals, (n, c, l) -> (n, 1, l, c)."""
    if x.ndim == 3 and graph is not None and len(graph.shapes[graph.input]) == 3:
        x = x.unsqueeze(2)
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
    """The imported network gives what ``module`` gives for each frame; returns what passes leave of
    it."""
    graph = exported("net", module, x[:1])
    with torch.no_grad():
        expected = torch.cat([module(frame[None].clone()) for frame in x])
    return check_outputs(graph, x, expected)


def check_outputs(graph: FloatGraph, x: torch.Tensor, expected: torch.Tensor) -> FloatGraph:
    """``graph`` gives for ``x`` what is ``expected``, before and after the passes."""
    small = simplified(graph)
    for each in (graph, small):
        found = each.outputs(ours(x, graph).double())
        wanted = ours(expected, graph if x.ndim == 3 else None).reshape(found.shape).double()
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    if x.ndim == 3:
        moved = [node.axes for node in small.nodes if isinstance(node, nodes.Rearranged)]
        assert all(axes == tuple(sorted(axes)) for axes in moved), "a copy in another order"
    return small


def check_integers(network: FloatGraph, x: torch.Tensor) -> tuple[Graph, IntArray]:
    """Lowered with ranges that ``x`` has, each operator is within a unit; returns the graph and the
    integers of ``x``."""
    frames = ours(x, network).double()
    graph = lower(network, observed(network, frames))
    integers = stored(graph, graph.input, frames.numpy())
    check_steps(network, graph, integers)
    return graph, integers


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


def check_steps(network: FloatGraph, graph: Graph, frames: IntArray) -> None:
    """Each operator's integers are the real result of *its own integer inputs*, rounded once, but
    for a fifth of them, halves mostly, which are one unit from it."""
    values = graph.run(frames)
    for node in network.nodes:
        inputs = [torch.from_numpy(real(graph, name, values[name])) for name in node.inputs]
        exact = as_stored(graph, node).evaluate(inputs).numpy()
        difference = np.abs(values[node.output] - stored(graph, node.output, exact))
        said = f"{node.name}: {(difference > 0).mean():.1%} differ, by up to {difference.max()}"
        assert difference.max() <= 1 and (difference > 0).mean() <= 0.2, said
