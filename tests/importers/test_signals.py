"""Networks of one dimension, (1, c, l): stored as images of height 1, channels last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper
from torch import nn
from torch.nn import functional as F

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.float_nodes import Rearranged
from pipeline.importers.float_passes import simplified
from pipeline.importers.lower import lower
from pipeline.importers.torch_export import exported
from tests.importers.onnx_models import imported, ints, model, parsed, weights
from tests.importers.support import observed, shaken, stored, worst_step
from tests.importers.torch_modules import Of
from tests.tiers import quick

N = helper.make_node
SHAPE = (1, 3, 20)


def signals() -> torch.Tensor:
    return torch.randn(12, *SHAPE[1:], generator=torch.Generator().manual_seed(1))


def check(network: FloatGraph, expected: torch.Tensor) -> Graph:
    """Against the source's outputs for ``signals``, and each integer operator within one unit."""
    frames = signals().transpose(1, 2).unsqueeze(1).double()
    assert network.shapes[network.input] == (1, 20, 3)
    moved = [node.axes for node in network.nodes if isinstance(node, Rearranged)]
    assert all(axes == tuple(sorted(axes)) for axes in moved), "a copy in another order"
    wanted = expected.transpose(1, 2) if expected.ndim == 3 else expected
    found = network.outputs(frames)
    torch.testing.assert_close(
        found.reshape(12, -1), wanted.reshape(12, -1).double(), rtol=1e-4, atol=1e-4
    )
    graph = lower(network, observed(network, frames))
    worst = worst_step(network, graph, stored(graph, graph.input, frames.numpy()))
    assert max(worst.values()) <= 1, worst
    return graph


CONV = N("Conv", ["x", "w"], ["a"], pads=[1, 1])
ONNX: dict[str, list[onnx.NodeProto]] = {
    "all convolutions": [CONV, N("Conv", ["a", "v"], ["y"], strides=[2])],
    "maximum": [CONV, N("MaxPool", ["a"], ["y"], kernel_shape=[3], strides=[2], pads=[1, 0])],
    "ceiled": [CONV, N("MaxPool", ["a"], ["y"], kernel_shape=[3], strides=[2], ceil_mode=1)],
    "average": [CONV, N("AveragePool", ["a"], ["y"], kernel_shape=[4], strides=[4])],
    "counted": [CONV, N("AveragePool", ["a"], ["y"], kernel_shape=[3], pads=[1, 1],
                        count_include_pad=1)],
    "global": [CONV, N("GlobalAveragePool", ["a"], ["g"]), N("Flatten", ["g"], ["y"])],
    "global maximum": [CONV, N("GlobalMaxPool", ["a"], ["g"]), N("Flatten", ["g"], ["y"])],
    "mean": [CONV, N("ReduceMean", ["a", "last"], ["y"], keepdims=0)],
    "greatest": [CONV, N("ReduceMax", ["a", "last"], ["y"], keepdims=0)],
    "padded": [CONV, N("Pad", ["a", "pads"], ["p"]), N("Conv", ["p", "v"], ["y"])],
    "padded input": [N("Pad", ["x", "pads"], ["p"]), N("Conv", ["p", "w"], ["y"])],
    "cut, as causal convolutions are": [CONV, N("Slice", ["a", "one", "end", "last"], ["y"])],
    "joined": [CONV, N("Sigmoid", ["a"], ["b"]), N("Concat", ["a", "b"], ["y"], axis=1)],
    "gated": [CONV, N("GlobalAveragePool", ["a"], ["g"]), N("Mul", ["a", "g"], ["y"])],
    "dense": [CONV, N("Flatten", ["a"], ["f"]), N("Gemm", ["f", "d"], ["y"], transB=1)],
}  # fmt: skip


@pytest.mark.parametrize("name", quick(5, ONNX))
def test_onnx(name: str) -> None:
    held = {
        "w": weights(8, 3, 3), "v": weights(5, 8, 3), "d": weights(4, 160), "last": ints(-1),
        "pads": ints(0, 0, 1, 0, 0, 2), "one": ints(1), "end": ints(-1),
    }  # fmt: skip
    made = model(ONNX[name], SHAPE, held)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    expected = [session.run(None, {"x": x[None].numpy()})[0] for x in signals()]
    check(
        imported("net", parsed(made), (0.0, 255.0)),
        torch.from_numpy(np.concatenate(expected)),
    )


Forward = Callable[[torch.Tensor], torch.Tensor]
TORCH: dict[str, Forward] = {
    "relu": F.relu,
    "maximum": lambda x: F.max_pool1d(x, 3, 2, 1),
    "average": lambda x: F.avg_pool1d(x, 4),
    "adaptive": lambda x: F.adaptive_avg_pool1d(x, 5),
    "mean": lambda x: x.mean(2),
    "mean kept": lambda x: x.mean(-1, keepdim=True).flatten(1),
    "greatest": lambda x: x.amax(2),
}


@pytest.mark.parametrize("name", quick(2, TORCH))
def test_torch(name: str) -> None:
    def forward(parts: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return TORCH[name](parts.norm(parts.conv(x)))

    torch.manual_seed(0)
    net = Of(forward, conv=nn.Conv1d(3, 8, 3, padding=1), norm=nn.BatchNorm1d(8)).eval()
    with torch.no_grad():
        expected = net(signals())
    check(exported("net", net, torch.zeros(SHAPE)), expected)


def test_a_vector_may_be_normalized_after_its_activation() -> None:
    """A scale that folds nowhere; its operators have names of their own."""
    net = shaken(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.BatchNorm1d(5))).eval()
    x = torch.rand(9, 6)
    network = simplified(exported("net", net, x[:1]))
    graph = lower(network, observed(network, x.double()))
    names = [op.name for op in graph.operators]
    assert len(names) == len(set(names)) == 4, names
    again = replace(graph.operators[1], name=names[0])
    with pytest.raises(ThimbleError, match="two operators of one name"):
        replace(graph, operators=(graph.operators[0], again, *graph.operators[2:]))


def test_a_mean_over_channels_and_rows() -> None:
    """They do not lie side by side: elements are moved first."""
    net = Of(lambda m, x: m.conv(x).mean((1, 2)), conv=nn.Conv2d(4, 3, 1))
    x = torch.rand(9, 4, 5, 6)
    network = exported("net", net, x[:1])
    with torch.no_grad():
        expected = net(x)
    found = network.outputs(x.permute(0, 2, 3, 1)).reshape(9, 6)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ThimbleError, match="not the batch's"):
        exported("net", Of(lambda m, x: x.mean(0) + 1), torch.zeros(1, 4, 5))
