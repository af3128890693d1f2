"""One network as a float .tflite file and as PyTorch's exporter writes it for ONNX: one graph."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline import passes
from pipeline.graph.operators.lookup import Lookup
from pipeline.importers import float_nodes as nodes
from pipeline.importers.base import Imported
from pipeline.importers.float_graph import FloatGraph, Node
from pipeline.importers.float_passes import simplified
from pipeline.importers.lower import lower
from pipeline.importers.onnx import Onnx
from pipeline.importers.tflite import TFLite
from pipeline.importers.torch_export import exported
from pipeline.plan.fit import needs
from pipeline.strategies.joint import Joint
from tests.boards import load_hardware
from tests.importers.support import observed, shaken
from tests.importers.tflite_writer import Writer
from tests.models.counting import member
from tests.tiers import quick

NETWORKS = [
    *("ds_cnn_s", "lenet5", "blocks", "resnet8", "autoencoder", "res8", "res15", "time_channel"),
    *("ds_cnn_m", "ds_cnn_l", "micronet_kws_s", "micronet_kws_m", "mobilenet_v1_vww"),
    *("mobilenet_v2_vww", "mobilenet_v2_cifar10", "resnet10_cifar10", "efficientnet_b0"),
    *("mcunet_10fps", "mcunet_5fps", "mcunet_m"),
]
PASSES = ("fold_pad", "fold_reshape")
CLIPS = {None: 0, (0.0, math.inf): 1, (0.0, 6.0): 3}
"""Numbers of fused activations in the schema."""
FUNCTIONS = {"tanh": "TANH", "sigmoid": "LOGISTIC", "hardswish": "HARD_SWISH"}


def same(node: Any, shape: tuple[int, ...]) -> bool:
    """Check whether TensorFlow's SAME pads so."""
    kernel = node.weights.shape[1:3] if isinstance(node, nodes.Weighted) else node.kernel
    found: list[int] = []
    for extent, k, stride in zip(shape, kernel, node.stride, strict=False):
        total = max(0, (math.ceil(extent / stride) - 1) * stride + k - extent)
        found += [total // 2, total - total // 2]
    return tuple(found) == node.padding


class Written(Writer):
    """The file of a float graph."""

    def of(self, graph: FloatGraph) -> bytes:
        self.made = {graph.input: self.real_tensor(graph.shapes[graph.input])}
        for node in graph.nodes:
            self.made[node.output] = self.node(node, graph)
        return self.content([self.made[graph.input]], [self.made[graph.output]])

    def real_tensor(self, shape: tuple[int, ...]) -> int:
        return self.tensor((1, *shape), dtype="FLOAT32")

    def float_constant(self, values: Any) -> int:
        return self.constant(np.array(values, np.float32))

    def step(self, kind: str, inputs: list[int], shape: tuple[int, ...], *options: Any) -> int:
        result = self.real_tensor(shape)
        self.operator(kind, inputs, [result], *options[:1], **(options[1] if options else {}))
        return result

    def window(self, node: Any, source: int, shape: tuple[int, ...]) -> tuple[int, dict[str, Any]]:
        """Return what a window operator reads, and its options: padded first where SAME differs."""
        fits = same(node, shape)
        if any(node.padding) and not fits:
            top, bottom, left, right = node.padding
            around = self.ints([[0, 0], [top, bottom], [left, right], [0, 0]])
            padded = (shape[0] + top + bottom, shape[1] + left + right, shape[2])
            source = self.step("PAD", [source, around], padded)
        stride = {"StrideH": node.stride[0], "StrideW": node.stride[1]}
        fused = CLIPS[node.clip]
        return source, {"Padding": 0 if fits else 1, "FusedActivationFunction": fused, **stride}

    def node(self, node: Node, graph: FloatGraph) -> int:
        sources, shape = [self.made[name] for name in node.inputs], graph.shapes[node.output]
        read = graph.shapes[node.inputs[0]]
        fused = {"FusedActivationFunction": CLIPS[node.clip]}
        match node:
            case nodes.Convolution():
                source, options = self.window(node, sources[0], read)
                down, across = node.dilation
                dilation = {"DilationHFactor": down, "DilationWFactor": across}
                weights, kind = node.weights, "CONV_2D"
                if node.groups > 1:
                    assert node.groups == read[2], "groups of more channels"
                    weights, kind = weights.transpose(3, 1, 2, 0), "DEPTHWISE_CONV_2D"
                    options["DepthMultiplier"] = shape[2] // read[2]
                inputs = [source, self.float_constant(weights), self.float_constant(node.bias)]
                name = "DepthwiseConv2DOptions" if node.groups > 1 else "Conv2DOptions"
                return self.step(kind, inputs, shape, name, options | dilation)
            case nodes.Linear():
                flat = node.weights.reshape(len(node.weights), -1)
                count = flat.shape[1]
                source = self.step("RESHAPE", [*sources, self.ints([1, count])], (count,))
                inputs = [source, self.float_constant(flat), self.float_constant(node.bias)]
                return self.step("FULLY_CONNECTED", inputs, shape, "FullyConnectedOptions", fused)
            case nodes.Pool():
                source, options = self.window(node, sources[0], read)
                assert options["Padding"] == 0 or not any(node.padding)
                options |= {"FilterHeight": node.kernel[0], "FilterWidth": node.kernel[1]}
                kind = "MAX_POOL_2D" if isinstance(node, nodes.MaxPool) else "AVERAGE_POOL_2D"
                return self.step(kind, [source], shape, "Pool2DOptions", options)
            case nodes.GlobalMean():
                inputs, keep = [*sources, self.ints([1, 2])], {"KeepDims": True}
                return self.step("MEAN", inputs, shape, "ReducerOptions", keep)
            case nodes.Binary() if node.constant is None:
                kind = "ADD" if isinstance(node, nodes.Sum) else "MUL"
                return self.step(kind, sources, shape, f"{kind.capitalize()}Options", fused)
            case nodes.Padded():
                return self.step("PAD", [*sources, self.ints([(0, 0), *node.padding])], shape)
            case nodes.Function(body=body):
                assert len(body.steps) == 1
                if (name := body.steps[0].function) != "silu":
                    return self.step(FUNCTIONS[name], sources, shape)
                gate = self.step("LOGISTIC", sources, shape)
                return self.step("MUL", [*sources, gate], shape, "MulOptions", fused)
        raise AssertionError(f"a {type(node).__name__} is not written")


def graph_of(model: Imported) -> FloatGraph:
    found = model.float_graph()
    assert found is not None
    return simplified(found)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", quick(1, NETWORKS, ci=4))
def test_both_files_give_one_integer_graph(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = member(name)
    network, pixels = shaken(model.build()), model.example()
    torch.onnx.export(network, (pixels,), str(tmp_path / "net.onnx"), dynamo=False)
    written = Written().of(simplified(exported(name, network, pixels)))
    (tmp_path / "net.tflite").write_bytes(written)
    each = [
        graph_of(kind(str(tmp_path / f"net.{end}"), input_range=(-1.0, 1.0)))
        for kind, end in ((Onnx, "onnx"), (TFLite, "tflite"))
    ]
    shape = each[0].shapes[each[0].input]
    assert each[1].shapes[each[1].input] == shape
    frames = torch.rand(4, *shape, generator=torch.Generator().manual_seed(1)).double() * 255
    first, second = (
        passes.applied(lower(graph, observed(graph, frames)), PASSES) for graph in each
    )
    assert [type(op) for op in first.operators] == [type(op) for op in second.operators]
    for a, b in zip(first.operators, second.operators, strict=True):
        ours, theirs = first.tensors[a.output], second.tensors[b.output]
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.scale, theirs.scale, rtol=1e-4, err_msg=a.output)
        assert abs(ours.zero_point - theirs.zero_point) <= 1
        for one, other in zip(a.parameters, b.parameters, strict=True):
            apart = abs(first.constants[one].astype(int) - second.constants[other])
            sums = apart.ndim == 1 and not isinstance(a, Lookup)
            unit = max(1, 1e-4 * abs(first.constants[one]).max() if sums else 1)
            assert apart.max() <= unit, one
    integers = np.random.default_rng(2).integers(-128, 128, (4, *shape))
    ours, theirs = first.evaluate(integers), second.evaluate(integers)
    assert abs(ours - theirs).max() <= 2


class Block(torch.nn.Module):
    """Norms, functions and attention, which the exporters decompose each in its own way."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.first = nn.Sequential(nn.Conv2d(1, 16, 4, 4), nn.GroupNorm(2, 16), nn.SiLU())
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
        self.last = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 10), nn.LogSoftmax(-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        words: torch.Tensor = self.layer(self.first(x).flatten(2).transpose(1, 2))
        found: torch.Tensor = self.last(words.mean(1))
        return found


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
def test_both_exporters_of_pytorch_give_one_graph_and_one_peak(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network, board = Block().eval(), load_hardware("nucleo_u575zi")
    found = []
    for newer in (False, True):
        path = str(tmp_path / f"{newer}.onnx")
        torch.onnx.export(network, (torch.rand(1, 1, 16, 16),), path, dynamo=newer, verbose=False)
        graph = graph_of(Onnx(path, input_range=(-1.0, 1.0)))
        frames = torch.zeros(2, *graph.shapes[graph.input]).double()
        integers = passes.applied(lower(graph, observed(graph, frames)), passes.known())
        kinds = [type(op) for op in integers.operators]
        found.append((kinds, needs(Joint().plan(integers, board), board)["sram"]))
    assert found[0] == found[1]
