"""Comparison of float graphs and integer graphs, with each other and with onnxruntime."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from torch import nn

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph, Node
from pipeline.importers.float_pairs import Hidden
from pipeline.importers.float_passes import simplified
from pipeline.importers.lower import lower
from pipeline.importers.onnx import Onnx
from pipeline.importers.scales import FIXED, range_affine
from pipeline.importers.torch_export import exported

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


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
        found = each.evaluate(ours(x, graph).double())
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
        if type(node) in FIXED:
            found[node.output] = FIXED[type(node)]
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
        if isinstance(node, Hidden):  # is the least integer, wherever that lies
            assert (values[node.output] == np.where(node.places, -128, values[node.output])).all()
            difference = np.where(node.places, 0, difference)
        said = f"{node.name}: {(difference > 0).mean():.1%} differ, by up to {difference.max()}"
        assert difference.max() <= 1 and (difference > 0).mean() <= 0.2, said


def session(made: Path | bytes) -> Any:
    """A file's network, operator by operator: optimized, it is fused into other kernels.

    Its integers do not depend on the processor: without VNNI, products of uint8 by int8 are added
    two at a time in 16 bits, which saturate; tests' weights have 7 bits, with which they do not.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])


def first(frames: Array) -> Array:
    """(n, h, w, c) -> (n, c, h, w)"""
    return frames.transpose(0, 3, 1, 2) if frames.ndim == 4 else frames


def last(frames: Array) -> Array:
    return frames.transpose(0, 2, 3, 1) if frames.ndim == 4 else frames


def answers(made: Path | bytes, frames: Array) -> Array:
    """Return onnxruntime's answer to each of ``frames``, as the file has them; channels last."""
    run = session(made)
    return last(np.concatenate([run.run(None, {"x": frame[None]})[0] for frame in frames]))


def units_off(graph: Graph, path: Path, frames: Array, stored: IntArray) -> IntArray:
    """Differences to onnxruntime's answers to ``frames``, in units of the output, of what ``graph``
    gives for ``stored`` integers, which mean the same."""
    expected = answers(path, frames)
    found = real(graph, graph.output, graph.evaluate(stored.astype(np.int64)))
    off = (found.reshape(expected.shape) - expected) / graph.tensors[graph.output].scale[0]
    return np.rint(off).astype(np.int64)


def off_at_random(made: onnx.ModelProto, folder: Path) -> IntArray:
    """``units_off`` for random integers of the input, nothing off by more than one."""
    onnx.save(made, folder / "net.onnx")
    graph = Onnx(str(folder / "net.onnx")).graph()
    stored = np.random.default_rng(0).integers(-128, 128, (40, *graph.tensors[graph.input].shape))
    frames = first(real(graph, graph.input, stored).astype(np.float32))
    off = units_off(graph, folder / "net.onnx", frames, stored)
    assert np.abs(off).max() <= 1
    return off
